import { api } from "../api.js";
import { goTo } from "../router.js";
import { useMay } from "../session.js";
import { ErrorNotice, Panel } from "../ui/page.js";
import { useAction } from "../ui/use-action.js";

const SLOW_SECONDS = 8;

/** Only under `dev`: a job slow enough to be killed in the middle. */
export function CrashPanel() {
  const may = useMay();
  const run = useAction({
    act: () => api.enqueueJob({ body: { type: "demo_slow", input: { seconds: SLOW_SECONDS } } }),
    said: "Sample job submitted",
    onDone: ({ job_id }) => goTo(`/jobs/${job_id}`),
  });
  if (!may("crashWorker")) return null;
  return (
    <Panel title="See a crash survived">
      <div className="row spread">
        <p className="muted">
          Runs a sample job that takes {SLOW_SECONDS} seconds. Its page offers to kill the worker process in
          the middle: the attempt ends as crashed, a second one finishes, and there is one result.
        </p>
        <button type="button" className="button" disabled={run.isPending} onClick={() => run.mutate()}>
          Run the slow sample
        </button>
      </div>
      {run.error && <ErrorNotice error={run.error} />}
    </Panel>
  );
}
