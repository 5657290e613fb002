import type { AttemptJson, JobJson } from "../../src/http/client.js";
import { Id } from "../ui/copy.js";
import { Json, Text } from "../ui/json.js";
import { Empty, ErrorNotice, Panel } from "../ui/page.js";
import { lookOf, StateBadge } from "../ui/state.js";
import { shortDuration, Time, useNow } from "../ui/time.js";
import { useAttempts } from "./use-job.js";

/** Every attempt on one scale of time, from the job's creation to its end. */
export function AttemptsPanel({ job, renewals }: { job: JobJson; renewals: number }) {
  const { data: attempts, error } = useAttempts(job);
  const now = useNow();
  const scale = {
    from: Date.parse(job.created_at),
    to: job.completed_at ? Date.parse(job.completed_at) : now,
  };
  return (
    <Panel
      title="Attempts"
      aside={
        <span className="muted small">
          bars run from the job's creation to {job.completed_at ? "its end" : "now"}
        </span>
      }
    >
      {error && <ErrorNotice error={error} />}
      {attempts?.length === 0 && <NotStarted job={job} />}
      <ol className="timeline">
        {attempts?.map((attempt) => (
          <Attempt key={attempt.attempt_no} attempt={attempt} job={job} scale={scale} renewals={renewals} />
        ))}
      </ol>
    </Panel>
  );
}

function NotStarted({ job }: { job: JobJson }) {
  if (job.state !== "PENDING") return <Empty title="It ended before any attempt" />;
  return (
    <Empty title="Not started yet" command={`oracle-worker work --queues ${job.queue}`}>
      It runs when a worker that serves its type and queue has room.
    </Empty>
  );
}

interface AttemptProps {
  attempt: AttemptJson;
  job: JobJson;
  scale: { from: number; to: number };
  renewals: number;
}

function Attempt({ attempt, job, scale, renewals }: AttemptProps) {
  const running = attempt.status === "RUNNING";
  const { tone } = lookOf(attempt.status);
  return (
    <li className={`tone-mark-${tone}`}>
      <div className="row">
        <strong>Attempt {attempt.attempt_no}</strong>
        <StateBadge state={attempt.status} />
        {attempt.cause && <code title="cause">{attempt.cause}</code>}
        <span className="muted small">
          <Time at={attempt.started_at} />, <Duration attempt={attempt} />
        </span>
      </div>
      <Bar attempt={attempt} tone={tone} scale={scale} />
      <p className="muted small row">
        <span className="breaks">
          worker {attempt.worker_id}
          {attempt.handler_version && `, version ${attempt.handler_version}`}
        </span>
        <Id value={attempt.attempt_id} what="attempt id" />
      </p>
      {running && attempt.attempt_id === job.current_attempt_id && <Lease job={job} renewals={renewals} />}
      {attempt.error && <AttemptError error={attempt.error} />}
      {attempt.late_output !== null && (
        <details>
          <summary>Came too late: kept as evidence, not as the result</summary>
          <Json value={attempt.late_output} what="late output" />
        </details>
      )}
    </li>
  );
}

function Duration({ attempt }: { attempt: AttemptJson }) {
  const now = useNow();
  const end = attempt.ended_at ? Date.parse(attempt.ended_at) : now;
  const seconds = Math.max(0, end - Date.parse(attempt.started_at)) / 1000;
  return <>{attempt.ended_at ? `took ${shortDuration(seconds)}` : `for ${shortDuration(seconds)}`}</>;
}

function Bar({
  attempt,
  tone,
  scale,
}: {
  attempt: AttemptJson;
  tone: string;
  scale: { from: number; to: number };
}) {
  const span = Math.max(1, scale.to - scale.from);
  const part = (at: number) => Math.min(100, Math.max(0, ((at - scale.from) / span) * 100));
  const start = part(Date.parse(attempt.started_at));
  const end = attempt.ended_at ? part(Date.parse(attempt.ended_at)) : 100;
  return (
    <div className={`span-track ${tone}`}>
      <i style={{ left: `${start}%`, width: `${Math.max(0.5, end - start)}%` }} />
    </div>
  );
}

/** The lease is the truth of who runs it; renewals push its end further away. */
function Lease({ job, renewals }: { job: JobJson; renewals: number }) {
  const now = useNow();
  const late = job.lease_expires_at !== null && Date.parse(job.lease_expires_at) < now;
  return (
    <p className={late ? "error-text small" : "muted small"}>
      {late ? "Lease ran out " : "Lease ends "}
      <Time at={job.lease_expires_at} />
      {renewals > 0 && `, renewed ${renewals} ${renewals === 1 ? "time" : "times"} since you look`}
      {late && ": another attempt takes over"}
    </p>
  );
}

function AttemptError({ error }: { error: NonNullable<AttemptJson["error"]> }) {
  return (
    <>
      <p className="error-text">
        <code>{error.code}</code> {error.name && `${error.name}: `}
        {error.message}
      </p>
      {error.stack && (
        <details>
          <summary>Stack</summary>
          <Text value={error.stack} what="stack" />
        </details>
      )}
    </>
  );
}
