import { statement } from "../database.js";
import { type Check, ok, warn } from "./check.js";

/** A look, not a count: what waits at the front tells enough. */
const ROWS = 20_000;

const readUnserved = statement<{ queue_name: string; job_type: string; jobs: number }>(
  "doctor-job-types",
  `SELECT r.queue_name, j.job_type, count(*)::integer AS jobs
   FROM (SELECT queue_name, job_id FROM {schema}.ready_jobs LIMIT $1) r
   JOIN {schema}.jobs j ON j.job_id = r.job_id
   GROUP BY 1, 2
   HAVING NOT EXISTS (
     SELECT FROM {schema}.workers w
     WHERE w.seen_at > clock_timestamp() - make_interval(secs => 2 * w.lease_seconds) AND NOT w.draining
       AND r.queue_name = ANY (w.queues) AND j.job_type = ANY (w.job_types))
   ORDER BY jobs DESC LIMIT 20`,
);

/** What waits has somebody to run it. */
export const jobTypes: Check = {
  name: "job types",
  async examine({ db }) {
    const unserved = await db.query(readUnserved, [ROWS]);
    if (unserved.length === 0) return ok("a live worker serves every type that waits");
    return unserved.map(({ queue_name: queue, job_type: type, jobs }) =>
      warn(
        `${jobs} jobs of type ${type} wait in queue ${queue}, and no live worker serves them`,
        `start a worker that has ${type}: \`oracle-worker work --queues ${queue} --handlers PATH\``,
      ),
    );
  },
};
