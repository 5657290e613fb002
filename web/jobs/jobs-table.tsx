import { useRef } from "react";
import type { JobJson } from "../../src/http/client.js";
import { useSession } from "../session.js";
import { Badge, StateBadge } from "../ui/state.js";
import { type Column, Table } from "../ui/table.js";
import { shortDuration, Time, useNow } from "../ui/time.js";
import { useRowKeys } from "../ui/use-row-keys.js";
import { JobLink } from "./job-link.js";

export function JobsTable({ jobs, gone }: { jobs: JobJson[]; gone: Set<string> }) {
  const { tenant_id } = useSession();
  const box = useRef<HTMLDivElement>(null);
  useRowKeys(box);
  const columns: Column<JobJson>[] = [
    { title: "State", cell: (job) => <State job={job} gone={gone.has(job.job_id)} />, narrow: true },
    { title: "Type", cell: (job) => <Name text={job.type} /> },
    { title: "Job", cell: (job) => <JobLink jobId={job.job_id} />, narrow: true },
    { title: "Queue", cell: (job) => <Name text={job.queue} /> },
    ...(tenant_id === null
      ? [{ title: "Tenant", cell: (job: JobJson) => <Name text={job.tenant_id} /> }]
      : []),
    { title: "Attempts", cell: (job) => attemptsOf(job), number: true, narrow: true },
    { title: "Created", cell: (job) => <Time at={job.created_at} />, narrow: true },
    { title: "Took", cell: (job) => <Took job={job} />, number: true, narrow: true },
    { title: "Error", cell: (job) => <LastError job={job} />, wide: true },
  ];
  return (
    <div ref={box}>
      <Table
        caption="Jobs, newest first"
        columns={columns}
        rows={jobs}
        keyOf={(job) => job.job_id}
        rowClass={(job) => (gone.has(job.job_id) ? "gone" : undefined)}
      />
    </div>
  );
}

/** One line however long the name; rows keep their height. */
function Name({ text }: { text: string }) {
  return (
    <span className="name" title={text}>
      {text}
    </span>
  );
}

function State({ job, gone }: { job: JobJson; gone: boolean }) {
  if (gone) return <Badge tone="calm" icon="dotted" word="Moved on" />;
  return (
    <span className="badges">
      <StateBadge state={job.state} />
      {job.hold_reason && <Badge tone="warn" icon="held" word="Held" />}
    </span>
  );
}

export function attemptsOf(job: JobJson): string {
  return `${job.attempt_count - job.interruptions} of ${job.max_attempts}`;
}

/** From the first start to the end, or until now. */
function Took({ job }: { job: JobJson }) {
  const now = useNow();
  if (!job.started_at) return <span className="muted">–</span>;
  const end = job.completed_at ? Date.parse(job.completed_at) : now;
  return <>{shortDuration(Math.max(0, end - Date.parse(job.started_at)) / 1000)}</>;
}

function LastError({ job }: { job: JobJson }) {
  if (!job.error) return null;
  return (
    <span className="error-cell" title={job.error.message}>
      <code>{job.error.code}</code> {job.error.message}
    </span>
  );
}
