import type { Database } from "./database.js";
import { withAdminClient } from "./migrate.js";

/**
 * Lets time pass for every unfinished job, for tests: to move the clock on by some seconds is to move every
 * stored moment back by as much. Production statements so need no clock of their own.
 */
export async function shiftTime(db: Database, seconds: number): Promise<void> {
  const shift = `make_interval(secs => ${Number(seconds)})`;
  await withAdminClient(db, async (client) => {
    await client.query("BEGIN");
    await client.query(`SET LOCAL ROLE ${db.schema}_owner`);
    await client.query(`DELETE FROM ${db.schema}.timers WHERE kind = 'deadline'`);
    // The trigger jobs_waiting moves ready rows and timers of waiting jobs along.
    await client.query(
      `UPDATE ${db.schema}.jobs SET run_after = run_after - ${shift}, deadline = deadline - ${shift},
         lease_expires_at = lease_expires_at - ${shift}
       WHERE state IN ('PENDING', 'RUNNING', 'FAILED_RETRYABLE')`,
    );
    await client.query(
      `INSERT INTO ${db.schema}.timers (due_at, job_id, kind, tenant_id)
       SELECT deadline, job_id, 'deadline', tenant_id FROM ${db.schema}.jobs
       WHERE state = 'RUNNING' AND deadline IS NOT NULL`,
    );
    await client.query(`UPDATE ${db.schema}.claims SET expires_at = expires_at - ${shift}`);
    await client.query("COMMIT");
  });
}
