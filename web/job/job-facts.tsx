import type { ReactNode } from "react";
import type { JobJson } from "../../src/http/client.js";
import { attemptsOf } from "../jobs/jobs-table.js";
import { Link } from "../router.js";
import { Id, shortId } from "../ui/copy.js";
import { Facts, Panel } from "../ui/page.js";
import { shortDuration, Time } from "../ui/time.js";

export function JobFacts({ job }: { job: JobJson }) {
  const of = (name: string, value: string) => `/jobs?${new URLSearchParams({ [name]: value })}`;
  return (
    <Panel title="About this job">
      <Facts
        items={[
          [
            "Queue",
            <Link key="q" href={of("queue", job.queue)}>
              {job.queue}
            </Link>,
          ],
          ["Tenant", job.tenant_id],
          ["Priority", job.priority],
          ["Attempts", attemptsOf(job)],
          ["Interruptions", job.interruptions],
          ["Timeout", job.timeout_seconds === null ? "of its type" : shortDuration(job.timeout_seconds)],
          ["Created", <Time key="t" at={job.created_at} />],
          ["Due", <Time key="t" at={job.run_after} />],
          ["Started", <Time key="t" at={job.started_at} />],
          ["Ended", <Time key="t" at={job.completed_at} />],
          ["Deadline", <Time key="t" at={job.deadline} />],
          ["Key", <Id key="k" value={job.idempotency_key} what="idempotency key" />],
          ["Specification", <Id key="s" value={job.spec_hash} what="specification hash" />],
          ...given("Pinned version", job.handler_version),
          ...given(
            "Replay of",
            job.replay_of && <Link href={`/jobs/${job.replay_of}`}>{shortId(job.replay_of)}</Link>,
          ),
        ]}
      />
    </Panel>
  );
}

/** What few jobs have, and none gets later. */
function given(name: string, value: ReactNode): [string, ReactNode][] {
  return value ? [[name, value]] : [];
}
