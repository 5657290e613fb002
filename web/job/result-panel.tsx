import { useMutation } from "@tanstack/react-query";
import type { JobJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { Id } from "../ui/copy.js";
import { Json } from "../ui/json.js";
import { ErrorNotice, Panel, Skeleton } from "../ui/page.js";
import { Badge } from "../ui/state.js";
import { useResult } from "./use-job.js";

export function ResultPanel({ job }: { job: JobJson }) {
  const { data: result, error } = useResult(job);
  const verify = useMutation({ mutationFn: () => api.verifyJob({ params: { id: job.job_id } }) });
  if (job.state !== "SUCCEEDED") return null;
  return (
    <Panel
      title="Result"
      aside={
        <button type="button" className="button" disabled={verify.isPending} onClick={() => verify.mutate()}>
          Verify hashes
        </button>
      }
    >
      {error && <ErrorNotice error={error} />}
      {!result && !error && <Skeleton />}
      {result && (
        <>
          <Json value={result.result} what="result" />
          <p className="row small">
            <span className="muted">SHA-256</span> <Id value={result.content_hash} what="content hash" />
            {result.provenance_hash && (
              <>
                <span className="muted">provenance</span>
                <Id value={result.provenance_hash} what="provenance hash" />
              </>
            )}
          </p>
        </>
      )}
      {verify.error && <ErrorNotice error={verify.error} />}
      {verify.data && <Checks verified={verify.data.verified} checks={verify.data.checks} />}
    </Panel>
  );
}

interface Check {
  name: string;
  stored: string;
  computed: string;
  matches: boolean;
}

/** What is stored, beside what was computed anew from it. */
function Checks({ verified, checks }: { verified: boolean; checks: Check[] }) {
  return (
    <ul className="checks" role="status">
      <li>
        {verified ? (
          <Badge tone="good" icon="check" word="Verified: every hash computed anew is the stored one" />
        ) : (
          <Badge tone="bad" icon="cross" word="Not what was stored" />
        )}
      </li>
      {checks.map((check) => (
        <li key={check.name} className="small">
          <span>{check.name}</span>
          <Id value={check.computed} what={`computed hash of ${check.name}`} />
          <span className={check.matches ? "muted" : "error-text"}>
            {check.matches ? "matches" : `stored: ${check.stored}`}
          </span>
        </li>
      ))}
    </ul>
  );
}
