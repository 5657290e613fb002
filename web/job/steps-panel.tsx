import type { JobJson } from "../../src/http/client.js";
import { Id } from "../ui/copy.js";
import { Json } from "../ui/json.js";
import { ErrorNotice, Panel, Skeleton } from "../ui/page.js";
import { Time } from "../ui/time.js";
import { useSteps } from "./use-job.js";

export function StepsPanel({ job }: { job: JobJson }) {
  const { data: steps, error } = useSteps(job);
  return (
    <Panel title="Steps">
      {error && <ErrorNotice error={error} />}
      {!steps && !error && <Skeleton lines={2} />}
      {steps?.length === 0 && (
        <p className="muted">None: a step's value is remembered and not computed twice.</p>
      )}
      <ul className="records">
        {steps?.map((step) => (
          <li key={step.name}>
            <div className="row">
              <strong className="breaks">{step.name}</strong>
              <span className="muted small">
                {step.attempt_no === 0 ? "from the job it replays" : `attempt ${step.attempt_no}`},{" "}
                <Time at={step.created_at} />
              </span>
              <Id value={step.value_hash} what="hash of the value" />
            </div>
            <details>
              <summary>Value</summary>
              {step.artifact_id ? (
                <p className="muted">Kept as an artifact: it is too large for a row.</p>
              ) : (
                <Json value={step.value} what={`value of step ${step.name}`} />
              )}
            </details>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
