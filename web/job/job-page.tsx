import { isFinished } from "../../src/core/states.js";
import type { JobWithInputJson } from "../../src/http/client.js";
import { useSession } from "../session.js";
import { Id } from "../ui/copy.js";
import { Json } from "../ui/json.js";
import { Empty, ErrorNotice, PageHead, Panel, Skeleton } from "../ui/page.js";
import { StateBadge } from "../ui/state.js";
import { ArtifactsPanel } from "./artifacts-panel.js";
import { AttemptsPanel } from "./attempts-panel.js";
import { CrashNotice } from "./crash-notice.js";
import { EffectsPanel } from "./effects-panel.js";
import { HoldNotice } from "./hold-notice.js";
import { JobActions } from "./job-actions.js";
import { JobFacts } from "./job-facts.js";
import { LogsPanel } from "./logs-panel.js";
import { ResultPanel } from "./result-panel.js";
import { StepsPanel } from "./steps-panel.js";
import { useAttempts, useJob } from "./use-job.js";
import { useJobStream } from "./use-job-stream.js";

export function JobPage({ jobId }: { jobId: string }) {
  const { data: job, error, refetch } = useJob(jobId);
  const stream = useJobStream(jobId, !!job && !isFinished(job.state));
  if (job) return <Job job={job} renewals={stream.renewals} connected={stream.connected} />;
  return (
    <>
      <PageHead title="Job" beside={<Id value={jobId} what="job id" />} />
      {!error && <Skeleton lines={10} />}
      {error && <ErrorNotice error={error} retry={() => void refetch()} />}
      {error && <Empty title="This job cannot be shown" command="oracle-worker jobs list" />}
    </>
  );
}

function Job({ job, renewals, connected }: { job: JobWithInputJson; renewals: number; connected: boolean }) {
  const { dev } = useSession();
  const live = !isFinished(job.state);
  const attempts = useAttempts(job);
  return (
    <>
      <PageHead
        title={job.type}
        beside={
          <span className="row">
            <StateBadge state={job.state} />
            <Id value={job.job_id} what="job id" />
            {live && <span className="muted small">{connected ? "live" : "connecting…"}</span>}
          </span>
        }
        actions={<JobActions job={job} />}
      />
      <HoldNotice job={job} />
      {dev && <CrashNotice job={job} />}
      {/* They come first on the page: shown later, they would push away all that is below. */}
      {attempts.isPending ? <Skeleton lines={10} /> : <Panels job={job} renewals={renewals} />}
    </>
  );
}

function Panels({ job, renewals }: { job: JobWithInputJson; renewals: number }) {
  return (
    <div className="job-columns">
      <div className="stack wide-gap">
        <AttemptsPanel job={job} renewals={renewals} />
        <LogsPanel job={job} />
        <ResultPanel job={job} />
        <Panel title="Input">
          <Json value={job.input} what="input" />
        </Panel>
      </div>
      <div className="stack wide-gap">
        <JobFacts job={job} />
        <EffectsPanel job={job} />
        <StepsPanel job={job} />
        <ArtifactsPanel job={job} />
      </div>
    </div>
  );
}
