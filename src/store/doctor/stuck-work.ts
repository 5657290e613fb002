import { statement } from "../database.js";
import { type Check, ok, type Symptom, warn } from "./check.js";

/** A look, not a count: what lies at the front tells enough. */
const ROWS = 20_000;
/** Workers that live reclaim within seconds. */
const RECLAIM_SECONDS = 60;
const WAIT_SECONDS = 3600;

const readExpired = statement<{ jobs: number }>(
  "doctor-expired",
  `SELECT count(*)::integer AS jobs FROM {schema}.jobs j
   WHERE j.job_id = ANY (ARRAY(
       SELECT unnest(c.job_ids) FROM {schema}.claims c
       WHERE c.expires_at < clock_timestamp() - make_interval(secs => $1) LIMIT $2))
     AND j.state = 'RUNNING' AND j.lease_expires_at < clock_timestamp() - make_interval(secs => $1)`,
);

const readHeld = statement<{ hold_reason: string; jobs: number; example: string }>(
  "doctor-held",
  `SELECT h.hold_reason, count(*)::integer AS jobs, min(h.job_id::text) AS example
   FROM (SELECT j.job_id, j.hold_reason FROM {schema}.jobs j WHERE j.hold_reason IS NOT NULL LIMIT $1) h
   GROUP BY 1 ORDER BY 2 DESC LIMIT 20`,
);

const readWaiting = statement<{ queue_name: string; jobs: number; hours: number }>(
  "doctor-waiting",
  `SELECT r.queue_name, count(*)::integer AS jobs,
     (extract(epoch FROM clock_timestamp() - min(j.run_after)) / 3600)::float8 AS hours
   FROM (SELECT queue_name, job_id FROM {schema}.ready_jobs LIMIT $2) r
   JOIN {schema}.jobs j ON j.job_id = r.job_id AND j.run_after < clock_timestamp() - make_interval(secs => $1)
   WHERE NOT EXISTS (
     SELECT FROM {schema}.queues q WHERE q.queue_name = r.queue_name AND q.paused_at IS NOT NULL)
   GROUP BY 1 ORDER BY 2 DESC LIMIT 20`,
);

/** What should have moved and did not. */
export const stuckWork: Check = {
  name: "stuck work",
  async examine({ db }) {
    const [expired] = await db.query(readExpired, [RECLAIM_SECONDS, ROWS]);
    const held = await db.query(readHeld, [ROWS]);
    const waiting = await db.query(readWaiting, [WAIT_SECONDS, ROWS]);
    const symptoms = [
      ...lost(expired?.jobs ?? 0),
      ...held.map(({ hold_reason: why, jobs, example }) =>
        warn(`held jobs: ${jobs} (${why}), such as ${example}`, decision(why, example)),
      ),
      ...waiting.map(({ queue_name: queue, jobs, hours }) =>
        warn(
          `ready for more than an hour in queue ${queue}: ${jobs} jobs, the first for ${hours.toFixed(1)} hours`,
          `more workers for it, or more at once: \`oracle-worker work --queues ${queue} --concurrency N\``,
        ),
      ),
    ];
    return symptoms.length > 0 ? symptoms : ok("nothing waits longer than it should");
  },
};

function lost(jobs: number): Symptom[] {
  if (jobs === 0) return [];
  const message = `leases that ran out and that nobody takes over: ${jobs}`;
  return [
    warn(message, "start a worker that serves their queues; a paused queue is resumed with `queues resume`"),
  ];
}

function decision(why: string, jobId: string): string {
  if (why === "awaiting approval") return `\`oracle-worker approve ${jobId}\`, or reject`;
  if (why === "effect in doubt")
    return "find out what happened: `oracle-worker effects list --state IN_DOUBT`";
  return `look at it: \`oracle-worker jobs show ${jobId}\``;
}
