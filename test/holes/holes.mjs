/**
 * The holes in the documents this product was made from, each with the change that opens it again and the test
 * that notices. Where the core has no direct counterpart the nearest one stands for it, and the title says so.
 *
 * @typedef {object} Hole
 * @property {number} number
 * @property {string} title
 * @property {Undo[]} undo
 * @property {{ file: string, name: string }} test
 * @property {RegExp} says What the failing test must say, so that a patch that merely breaks something is not
 *   taken for the hole.
 *
 * @typedef {object} Undo One replacement. It must fit exactly one place.
 * @property {string[]} within Files, or folders to search: SQL moves between the two below.
 * @property {string | RegExp} find
 * @property {string} replace
 */

const sql = ["src/store", "db/migrations"];
const leaseTest = "test/lease.test.ts";
const workerTest = "test/worker.test.ts";
const enqueueTest = "test/enqueue.test.ts";

/** @type {Hole[]} */
export const holes = [
  {
    number: 1,
    title: "completion that does not check the attempt",
    undo: [
      {
        within: sql,
        find: "WHERE j.job_id = o.job_id AND j.current_attempt_id = o.attempt_id",
        replace: "WHERE j.job_id = o.job_id",
      },
    ],
    test: { file: leaseTest, name: "keeps a late success as evidence, never as the result" },
    says: /expected 1 to be \+?0/,
  },
  {
    number: 2,
    title: "the loser is recorded as winner, and leaves no evidence",
    undo: [
      {
        within: ["src/store/settle.ts"],
        find: "const lost = settlements.filter(({ lease }) => !won.has(lease.attemptId));",
        replace: `const lost: Settlement[] = [];
  for (const { lease } of settlements) won.set(lease.attemptId, won.get(lease.attemptId) ?? "SUCCEEDED");`,
      },
    ],
    test: { file: leaseTest, name: "keeps a late success as evidence, never as the result" },
    says: /expected 1 to be \+?0/,
  },
  {
    number: 3,
    title: "a failure call that resurrects what is finished",
    undo: [
      {
        within: sql,
        find: /(FROM outcome o JOIN \{schema\}\.jobs j\s+ON [^;]*?o\.attempt_id) AND j\.state = 'RUNNING'/,
        replace: "$1",
      },
    ],
    test: { file: leaseTest, name: "a late failure moves neither SUCCEEDED nor CANCELLED" },
    says: /a closed attempt does not change|the state graph does not allow|expected 1 to be \+?0/,
  },
  {
    number: 4,
    title: "reclaim without an attempt bound",
    undo: [
      {
        within: sql,
        find: "WHEN j.attempt_count - j.interruptions >= j.max_attempts THEN 'EXHAUSTED'",
        replace: "",
      },
    ],
    test: {
      file: leaseTest,
      name: "ends a job whose attempts are used up, also when another queue's worker finds it",
    },
    says: /expected \[\] to match object/,
  },
  {
    number: 5,
    title: "no delay on retry",
    undo: [
      {
        within: ["src/core/retry.ts"],
        find: "return Math.max(retryAfterSeconds,",
        replace: "return 0 * Math.max(retryAfterSeconds,",
      },
    ],
    test: { file: "src/core/retry.test.ts", name: "of exponential backoff grows with the tries" },
    says: /expected \[ \+?0, \+?0, \+?0, \+?0 \] to deeply equal/,
  },
  {
    number: 6,
    title: "claiming only PENDING: a job that waits for its retry is never seen",
    undo: [
      {
        within: sql,
        find: "AND j.run_after <= clock_timestamp() AND (j.deadline IS NULL OR j.deadline > clock_timestamp())",
        replace: "AND j.run_after <= clock_timestamp() AND j.state = 'PENDING'",
      },
    ],
    test: { file: workerTest, name: "a plain error" },
    says: /expected (?:undefined|'FAILED_RETRYABLE') to be 'SUCCEEDED'/,
  },
  {
    number: 7,
    title: "payload as a command-line argument (here: a worker process's orders)",
    undo: [
      {
        within: ["src/worker/supervisor.ts"],
        find: "[options.childModule]",
        replace: '[options.childModule, options.childEnv(workerId).ORACLE_WORKER_CHILD ?? ""]',
      },
    ],
    test: {
      file: "test/processes.test.ts",
      name: "shows nobody its orders, its database or a payload in a command line (read from /proc)",
    },
    says: /expected '.*node\\u0000.*' not to contain/,
  },
  {
    number: 8,
    title: "unreadable output counted as success",
    undo: [
      {
        within: ["src/handlers"],
        find: 'validate(output, returned, "OUTPUT_INVALID")',
        replace: "returned",
      },
    ],
    test: { file: workerTest, name: "bad input and bad output end the job at once" },
    says: /to match object \{ state: 'FAILED_TERMINAL'/,
  },
  {
    number: 9,
    title: "heartbeat without state and expiry checks",
    undo: [
      {
        within: sql,
        find: "AND j.state = 'RUNNING' AND j.lease_expires_at > clock_timestamp()",
        replace: "",
      },
    ],
    test: { file: leaseTest, name: "extends nothing for a stale attempt or a finished job" },
    says: /lease_only_when_running|the state graph does not allow|expected 1 to be \+?0/,
  },
  {
    number: 10,
    title: "a start by id with no lease that could run out behind it",
    undo: [
      {
        within: sql,
        // The first lease after the name of the operation, in TypeScript or in SQL.
        find: /((?:"acquire",|\.acquire_jobs\()(?:(?!lease_expires_at)[\s\S])*lease_expires_at = )clock_timestamp\(\) \+ make_interval\([^)]*\)/,
        replace: "$1'infinity'",
      },
    ],
    test: { file: leaseTest, name: "a job whose starter died is taken over when its lease ends" },
    says: /expected \[\] to match object/,
  },
  {
    number: 11,
    title: "told only by message: nothing polls",
    undo: [
      {
        within: ["src/worker"],
        find: "setTimeout(() => void this.make(), nextMs)",
        replace: "undefined",
      },
    ],
    test: { file: workerTest, name: "finds a job that nobody announced, by polling" },
    says: /did not finish|WAIT_TIMEOUT/,
  },
  {
    number: 12,
    title: "result written before the fence (here: a row, not a file)",
    undo: [
      {
        within: sql,
        find: /SELECT job_id, attempt_id, attempt_started_at, tenant_id, p_content_hashes\[n\],[\s\S]*?p_payloads\[n\]::jsonb\s+FROM won/,
        replace: `SELECT o.job_id, o.attempt_id, clock_timestamp(), 'default', p_content_hashes[o.n], '-', p_payloads[o.n]::jsonb
     FROM unnest(p_job_ids, p_attempt_ids) WITH ORDINALITY AS o(job_id, attempt_id, n)`,
      },
    ],
    test: { file: leaseTest, name: "keeps a late success as evidence, never as the result" },
    says: /results\.insert refused|duplicate key/,
  },
  {
    number: 13,
    title: "a check before the insert, which races (here: dedupe 'active'), instead of a unique key",
    undo: [
      {
        within: ["db/migrations"],
        find: "CREATE UNIQUE INDEX jobs_active_spec",
        replace: "CREATE INDEX jobs_active_spec",
      },
      {
        within: ["src/store/enqueue.ts"],
        find: "await joinSucceededTwins(db, jobs, outcomes, client);",
        replace:
          "await joinSucceededTwins(db, jobs, outcomes, client); await joinExisting(db, jobs, outcomes, client);",
      },
    ],
    test: { file: enqueueTest, name: "active joins the unfinished twin, also in a race" },
    says: /expected \d+ to be 1/,
  },
  {
    number: 14,
    title: "a job at the head that may not run yet blocks its queue",
    undo: [
      {
        within: ["db/migrations"],
        find: /WHERE i\.due(?=\s+\)\s+SELECT array_agg)/,
        replace: "WHERE true",
      },
    ],
    test: {
      file: leaseTest,
      name: "a delayed job of high priority does not hide a ready one from a claim of one",
    },
    says: /expected \[\] to match object/,
  },
  {
    number: 15,
    title: "a row that exists aborts (here: a job submitted twice)",
    undo: [
      {
        within: sql,
        find: /ON CONFLICT DO NOTHING(?=\s+RETURNING job_id)/,
        replace: "",
      },
    ],
    test: { file: enqueueTest, name: "gives the same job for the same key and specification" },
    says: /duplicate key/,
  },
  {
    number: 16,
    title: "claim by IN (SELECT … LIMIT … FOR UPDATE SKIP LOCKED)",
    undo: [
      {
        within: sql,
        find: /picked AS MATERIALIZED \(\s+SELECT r\.row_id, .* AS limited/,
        replace: "picked AS (DELETE FROM {schema}.ready_jobs taken WHERE taken.job_id IN (SELECT r.job_id",
      },
      { within: sql, find: /SELECT ready\.ctid AS row_id, .* AS keyed/, replace: "SELECT ready.job_id" },
      {
        within: sql,
        find: /(FOR UPDATE SKIP LOCKED\s+\) r)\b/,
        replace: "$1) RETURNING taken.job_id AS row_id, false AS limited",
      },
      { within: sql, find: "row_ids tid[];", replace: "row_ids uuid[];" },
      {
        within: sql,
        find: "DELETE FROM {schema}.ready_jobs WHERE ctid = ANY (row_ids) RETURNING job_id",
        replace: "SELECT unnest(row_ids) AS job_id",
      },
    ],
    test: {
      file: "test/plans.test.ts",
      name: "without enable_material,enable_hashagg,enable_sort,enable_indexscan,enable_bitmapscan",
    },
    says: /to have a length of 1 but got/,
  },
  {
    number: 17,
    title: "another canonical form: keys in the order of their code points, as other languages sort them",
    undo: [
      {
        within: ["src/core/hash.ts"],
        find: "return keys.length <= FEW_KEYS ? insertionSorted(keys) : keys.sort();",
        replace: "return keys.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));",
      },
    ],
    test: { file: "src/core/hash.test.ts", name: "of specification 4" },
    says: /expected '[0-9a-f]+…' to be '220e74575545f7fa/,
  },
];
