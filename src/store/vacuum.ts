import { type Database, statement } from "./database.js";

/** Tables that every job leaves dead rows in, and those that forgotten jobs do. */
export type Littered = "by jobs" | "by pruning";

const tables: Record<Littered, string[]> = {
  "by jobs": ["ready_jobs", "timers", "claims", "outbox"],
  "by pruning": ["jobs", "results", "past_attempts", "attempt_reports", "attempt_logs"],
};

/** Larger tables are left to autovacuum: a gigabyte takes up to five seconds, and a call has thirty. */
const MOST_BYTES = 4 * 1024 ** 3;

// As autovacuum would decide. The right to vacuum can be given from PostgreSQL 17 on (012_prune.sql).
const findLittered = statement<{ name: string }>(
  "find-littered",
  `SELECT s.relname AS name FROM pg_catalog.pg_stat_user_tables s
   WHERE s.schemaname = '{schema}' AND s.relname = ANY ($1::text[])
     AND s.n_dead_tup > 5000 + s.n_live_tup / 5 AND pg_catalog.pg_total_relation_size(s.relid) <= $2
     AND CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 170000
       THEN pg_catalog.has_table_privilege(s.relid, 'MAINTAIN') ELSE false END`,
);

/**
 * Makes the room of dead rows usable again where there are many: autovacuum looks once a minute at best. Waits for
 * nobody, and keeps nobody waiting: what is locked is left out, and no table is cut shorter.
 */
export async function vacuum(db: Database, littered: Littered): Promise<string[]> {
  const names = (await db.query(findLittered, [tables[littered], MOST_BYTES])).map(({ name }) => name);
  for (const name of names) {
    const sql = `VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0) {schema}.${name}`;
    await db.query(statement<never>(`vacuum-${name}`, sql), []);
  }
  return names;
}
