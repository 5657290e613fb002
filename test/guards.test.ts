import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lease } from "../dist/core/job.js";
import type { Database } from "../dist/store/database.js";
import { settle } from "../dist/store/settle.js";
import { claimFrom, workerDatabase } from "./support/leases.js";
import { useTestDatabase } from "./support/oracle.js";

// What the database refuses to a person with psql and the application's role.

const db = useTestDatabase();
let store: Database;
beforeAll(async () => {
  store = workerDatabase(db);
});
afterAll(() => store.close());

let number = 0;
async function jobIn(state: string): Promise<string> {
  const queue = `guards-${number++}`;
  const job = await db.oracle.enqueue("any", { number }, { queue });
  if (state === "PENDING") return job.id;
  if (state === "CANCELLED") return (await db.oracle.cancel(job.id)).jobId;
  const lease = (await claimFrom(store, queue)).leases[0] as Lease;
  const error = { code: "HANDLER_ERROR" as const, message: "m", retryable: true };
  if (state === "SUCCEEDED") {
    await settle(store, [{ lease, outcome: { kind: "succeeded", resultText: "1", contentHash: "h" } }]);
  }
  if (state === "FAILED_TERMINAL") await settle(store, [{ lease, outcome: { kind: "terminal", error } }]);
  if (state === "FAILED_RETRYABLE") {
    await settle(store, [{ lease, outcome: { kind: "retryable", error, delaySeconds: 600 } }]);
  }
  return job.id;
}

const states = [
  "PENDING",
  "RUNNING",
  "SUCCEEDED",
  "FAILED_RETRYABLE",
  "FAILED_TERMINAL",
  "CANCELLED",
] as const;
/** Everything a change to the state needs to satisfy the CHECKs, so that only the graph can refuse it. */
const changeTo: Record<(typeof states)[number], string> = {
  PENDING: "completed_at = NULL, lease_expires_at = NULL, max_attempts = 100",
  RUNNING: `completed_at = NULL, lease_expires_at = clock_timestamp() + interval '1 min', worker_id = 'me',
    current_attempt_id = gen_random_uuid(), attempt_count = attempt_count + 1`,
  SUCCEEDED: "completed_at = clock_timestamp(), lease_expires_at = NULL",
  FAILED_RETRYABLE: "completed_at = NULL, lease_expires_at = NULL, error_json = '{}'",
  FAILED_TERMINAL: "completed_at = clock_timestamp(), lease_expires_at = NULL, error_json = '{}'",
  CANCELLED: "completed_at = clock_timestamp(), lease_expires_at = NULL",
};
/** Starting and completing is left to the functions that write the attempt and the result with it. */
const allowed: Record<(typeof states)[number], string[]> = {
  PENDING: ["PENDING", "CANCELLED", "FAILED_TERMINAL"],
  RUNNING: ["PENDING", "FAILED_RETRYABLE", "FAILED_TERMINAL", "CANCELLED"],
  SUCCEEDED: [],
  FAILED_RETRYABLE: ["FAILED_RETRYABLE", "FAILED_TERMINAL", "CANCELLED"],
  FAILED_TERMINAL: ["PENDING"],
  CANCELLED: ["PENDING"],
};

describe("the state graph", () => {
  for (const from of states) {
    it(`from ${from} allows ${allowed[from].join(", ") || "nothing"}`, async () => {
      const accepted: string[] = [];
      for (const to of states) {
        const id = await jobIn(from);
        const change = `UPDATE oracle.jobs SET state = '${to}', ${changeTo[to]} WHERE job_id = '${id}'`;
        await db.as("worker", change).then(
          () => accepted.push(to),
          (error: Error) => expect(error.message).toMatch(/refused/),
        );
      }
      expect(accepted.sort()).toEqual([...allowed[from]].sort());
    });
  }

  it("keeps a healthy lease from being taken, and an expired one from being extended", async () => {
    const id = await jobIn("RUNNING");
    const steal = `UPDATE oracle.jobs SET ${changeTo.RUNNING} WHERE job_id = '${id}'`;
    await expect(db.as("worker", steal)).rejects.toThrow(/state graph/);
    await db.sql(
      "UPDATE oracle.jobs SET lease_expires_at = clock_timestamp() - interval '1 s' WHERE job_id = $1",
      [id],
    );
    const extend =
      "UPDATE oracle.jobs SET lease_expires_at = clock_timestamp() + interval '1 h' WHERE job_id = $1";
    await expect(db.as("worker", extend, [id])).rejects.toThrow(/state graph/);
    await expect(db.as("worker", steal)).rejects.toThrow(/state graph/);
    await db.as("owner", steal);
  });
});

describe("constraints by name", () => {
  it.each([
    ["lease_only_when_running", "UPDATE oracle.jobs SET lease_expires_at = clock_timestamp()"],
    ["completed_requires_timestamp", "UPDATE oracle.jobs SET completed_at = clock_timestamp()"],
    [
      "held_only_while_waiting",
      "UPDATE oracle.jobs SET state = 'CANCELLED', completed_at = now(), hold_reason = 'x'",
    ],
    ["failed_has_error", "UPDATE oracle.jobs SET state = 'FAILED_TERMINAL', completed_at = now()"],
    ["interruptions_are_attempts", "UPDATE oracle.jobs SET interruptions = 1"],
    [
      "active_only_while_unfinished",
      "UPDATE oracle.jobs SET state = 'CANCELLED', completed_at = now(), active_spec_hash = 'x'",
    ],
  ])("%s", async (name, change) => {
    const id = await jobIn("PENDING");
    await expect(db.as("worker", `${change} WHERE job_id = $1`, [id])).rejects.toMatchObject({
      constraint: name,
    });
  });
});

describe("what the application's role may not do", () => {
  it.each([
    ["change a result", "UPDATE oracle.results SET result_payload = '2'"],
    ["delete a result", "DELETE FROM oracle.results"],
    ["delete a job", "DELETE FROM oracle.jobs"],
    ["delete an attempt", "DELETE FROM oracle.attempts"],
    ["change an input", "UPDATE oracle.jobs SET input_payload = '2'"],
    ["change a key", "UPDATE oracle.jobs SET idempotency_key = 'x'"],
    ["change a tenant", "UPDATE oracle.jobs SET tenant_id = 'x'"],
    [
      "insert a finished job",
      "INSERT INTO oracle.jobs (job_type, input_payload, state) VALUES ('t', '1', 'CANCELLED')",
    ],
    ["truncate", "TRUNCATE oracle.results"],
    ["change a log line", "UPDATE oracle.attempt_logs SET message = 'x'"],
    ["delete a log line", "DELETE FROM oracle.attempt_logs"],
    ["change an artifact", "UPDATE oracle.artifacts SET sha256 = 'x'"],
    ["delete an artifact", "DELETE FROM oracle.artifacts"],
    ["change an attempt's progress", "UPDATE oracle.attempts SET progress = '{}'"],
    ["change what an attempt reported", "UPDATE oracle.attempt_reports SET progress = '{}'"],
    ["delete a past attempt", "DELETE FROM oracle.past_attempts"],
    ["truncate logs", "TRUNCATE oracle.attempt_logs"],
    ["forget a migration", "DELETE FROM oracle.migrations"],
    ["create a table", "CREATE TABLE oracle.mine (n int)"],
  ])("%s", async (_what, sql) => {
    await jobIn("SUCCEEDED");
    await expect(db.as("worker", sql)).rejects.toMatchObject({ code: "42501" });
  });

  it.each([
    [
      "insert a job",
      "INSERT INTO oracle.jobs (job_type, input_payload, idempotency_key, spec_hash) VALUES ('t', '1', 'k', 'h')",
    ],
    [
      "insert an attempt",
      "INSERT INTO oracle.attempts (job_id, attempt_id, attempt_no, tenant_id, worker_id) SELECT job_id, gen_random_uuid(), 9, tenant_id, 'me' FROM oracle.jobs LIMIT 1",
    ],
    [
      "insert a result",
      "INSERT INTO oracle.results (job_id, attempt_id, tenant_id, content_hash, result_payload) SELECT job_id, gen_random_uuid(), tenant_id, 'h', '1' FROM oracle.jobs LIMIT 1",
    ],
    [
      "insert a log line",
      "INSERT INTO oracle.attempt_logs (job_id, attempt_no, seq, at, level, tenant_id, message) SELECT job_id, attempt_no, 1, now(), 'info', tenant_id, 'm' FROM oracle.attempts LIMIT 1",
    ],
    [
      "insert an artifact",
      "INSERT INTO oracle.artifacts (artifact_id, job_id, attempt_no, attempt_id, tenant_id, artifact_type, name, media_type, sha256, size, artifact_payload) SELECT gen_random_uuid(), job_id, attempt_no, attempt_id, tenant_id, 'json', 'n', 'a/b', repeat('0', 64), 1, '1' FROM oracle.attempts LIMIT 1",
    ],
  ])("%s past the functions that do", async (_what, sql) => {
    await expect(db.as("worker", sql)).rejects.toMatchObject({ code: "42501" });
  });

  it("change a closed attempt", async () => {
    const failed = await jobIn("FAILED_TERMINAL");
    const change = "UPDATE oracle.past_attempts SET status = 'RELEASED' WHERE job_id = $1";
    await expect(db.as("worker", change, [failed])).rejects.toThrow(/closed attempt/);
    await expect(
      db.sql("UPDATE oracle.attempts SET cause = 'x' WHERE job_id = $1", [failed]),
    ).rejects.toThrow(/written with its job/);
  });

  it.each(["server", "tenant"] as const)("start or complete jobs as %s", async (role) => {
    await expect(
      db.as(role, "SELECT oracle.settle_succeeded('{}', '{}', '{}', '{}', '{}', '{}')"),
    ).rejects.toMatchObject({ code: "42501" });
    await expect(
      db.as(role, "SELECT oracle.acquire_jobs(ARRAY[gen_random_uuid()], 'me', 60, gen_random_uuid(), NULL)"),
    ).rejects.toMatchObject({ code: "42501" });
    await expect(db.as(role, "SELECT oracle.report_attempts('[]')")).rejects.toMatchObject({ code: "42501" });
    await expect(
      db.as(role, "SELECT oracle.record_artifact(NULL, NULL, NULL, '', '', '', '', 0, NULL, NULL)"),
    ).rejects.toMatchObject({ code: "42501" });
  });

  it("not even a superuser changes a result or a succeeded job", async () => {
    const id = await jobIn("SUCCEEDED");
    await expect(
      db.sql("UPDATE oracle.results SET result_payload = '2' WHERE job_id = $1", [id]),
    ).rejects.toThrow(/never changes/);
    await expect(db.sql("UPDATE oracle.jobs SET priority = 1 WHERE job_id = $1", [id])).rejects.toThrow(
      /state graph/,
    );
  });
});

describe("attempts", () => {
  const statuses = (id: string) =>
    db.sql("SELECT attempt_no, status::text, worker_id, cause FROM oracle.attempts WHERE job_id = $1", [id]);

  it.each([
    ["RUNNING", { status: "RUNNING", cause: null }],
    ["SUCCEEDED", { status: "SUCCEEDED", cause: null }],
    ["FAILED_RETRYABLE", { status: "FAILED", cause: "HANDLER_ERROR" }],
    ["FAILED_TERMINAL", { status: "FAILED", cause: "HANDLER_ERROR" }],
  ])("of a job in %s are there once", async (state, attempt) => {
    const id = await jobIn(state);
    expect(await statuses(id)).toEqual([{ attempt_no: 1, worker_id: expect.any(String), ...attempt }]);
  });

  it.each([
    ["PENDING", "RELEASED"],
    ["CANCELLED", "CANCELLED"],
    ["FAILED_TERMINAL", "FAILED"],
  ] as const)("are kept when a person ends a running job as %s", async (state, status) => {
    const id = await jobIn("RUNNING");
    await db.as("worker", `UPDATE oracle.jobs SET state = '${state}', ${changeTo[state]} WHERE job_id = $1`, [
      id,
    ]);
    expect(await statuses(id)).toEqual([
      { attempt_no: 1, status, worker_id: expect.any(String), cause: "BY_HAND" },
    ]);
  });
});

describe("no job is lost to a change by hand", () => {
  it("an operator's UPDATE back to PENDING makes the job ready", async () => {
    const id = await jobIn("CANCELLED");
    await db.as("worker", `UPDATE oracle.jobs SET state = 'PENDING', ${changeTo.PENDING} WHERE job_id = $1`, [
      id,
    ]);
    expect(await db.sql("SELECT 1 FROM oracle.ready_jobs WHERE job_id = $1", [id])).toHaveLength(1);
  });

  it("a new priority or time moves the row, a hold removes it and its end brings it back", async () => {
    const id = await jobIn("PENDING");
    const ready = () => db.sql("SELECT rank FROM oracle.ready_jobs WHERE job_id = $1", [id]);
    await db.as("worker", "UPDATE oracle.jobs SET priority = 7 WHERE job_id = $1", [id]);
    expect(await ready()).toEqual([{ rank: -7 }]);
    await db.as("worker", "UPDATE oracle.jobs SET hold_reason = 'approval' WHERE job_id = $1", [id]);
    expect(await ready()).toEqual([]);
    await db.as(
      "worker",
      "UPDATE oracle.jobs SET hold_reason = NULL, run_after = clock_timestamp() + interval '1 h' WHERE job_id = $1",
      [id],
    );
    expect(await ready()).toEqual([]);
    expect(await db.sql("SELECT kind FROM oracle.timers WHERE job_id = $1", [id])).toEqual([{ kind: "run" }]);
    await db.as("worker", "UPDATE oracle.jobs SET run_after = clock_timestamp() WHERE job_id = $1", [id]);
    expect(await ready()).toEqual([{ rank: -7 }]);
    expect(await db.sql("SELECT kind FROM oracle.timers WHERE job_id = $1", [id])).toEqual([]);
  });
});
