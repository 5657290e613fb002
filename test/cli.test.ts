import { spawn } from "node:child_process";
import { defineJob } from "oracle-worker";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { echo, flaky } from "./support/jobs.js";
import { useTestDatabase } from "./support/oracle.js";
import { runCli } from "./support/process.js";

// The built program as a process of its own, as scripts call it.

let openGate = () => {};
const gate = new Promise<void>((resolve) => {
  openGate = resolve;
});
const gated = defineJob({
  type: "gated",
  input: z.object({}),
  output: z.object({}),
  run: () => gate.then(() => ({})),
});

const db = useTestDatabase();
let env: Record<string, string>;
beforeAll(async () => {
  env = { DATABASE_URL: db.url };
  await db.worker({ jobs: [echo, flaky, gated], queues: ["served"] });
});

const cli = (...args: string[]) => runToEnd(args, { env });
const enqueue = (...args: string[]) => cli("enqueue", "echo", "--input", '{"n": 1}', ...args);
const idOf = ({ json }: { json: Record<string, unknown> }) => String(json.job_id);

describe("jobs", () => {
  it("lists page by page, filtered, also by the words other queues use", async () => {
    for (const n of [1, 2, 3]) await db.oracle.enqueue("paged", { n }, { queue: "pages" });
    const first = await cli(
      "jobs",
      "list",
      "--queue",
      "pages",
      "--state",
      "queued",
      "--type",
      "paged",
      "--limit",
      "2",
    );
    const items = first.json.items as { job_id: string }[];
    expect(items).toHaveLength(2);
    const second = await cli(
      "jobs",
      "list",
      "--queue",
      "pages",
      "--limit",
      "2",
      "--after",
      String(first.json.next),
    );
    expect(second.json.items).toHaveLength(1);
    expect(second.json.next).toBeNull();
    const none = await cli("jobs", "list", "--queue", "pages", "--state", "SUCCEEDED");
    expect(none.json).toEqual({ items: [], next: null });
  });

  it("shows a job with its input, attempts and result hash; gives its result; verifies both hashes", async () => {
    const input = { failures: 1, how: "plain" as const };
    const job = await db.oracle.enqueue(flaky, input, { queue: "served" });
    await job.result({ timeoutSeconds: 20 });
    const { json } = await cli("jobs", "show", job.id);
    expect(json).toMatchObject({ job_id: job.id, state: "SUCCEEDED", input, attempt_count: 2 });
    expect(json.attempts).toMatchObject([
      { attempt_no: 1, status: "FAILED", error: { code: "HANDLER_ERROR" } },
      { attempt_no: 2, status: "SUCCEEDED", error: null },
    ]);
    expect(json).not.toHaveProperty("error");
    expect((await cli("jobs", "result", job.id)).stdout).toBe('{"attempt":2}\n');
    const verified = await cli("verify", job.id);
    expect(verified).toMatchObject({ code: 0, json: { verified: true } });
    expect(verified.json.checks).toMatchObject([
      { name: "spec_hash" },
      { name: "content_hash", stored: json.result_hash },
      { name: "provenance_hash", stored: json.provenance_hash },
    ]);
  });

  it("shows people a block and a table, without colours in a pipe", async () => {
    const job = await db.oracle.enqueue(
      "shown",
      { text: "\u001b[31m" },
      { queue: "idle", key: "\u001b[31mred" },
    );
    const shown = await runAsPerson(["jobs", "show", job.id], { env });
    expect(shown.stdout).toContain(`Job ${job.id} PENDING`);
    expect(shown.stdout).toContain("\\x1b[31mred");
    expect(shown.stdout).not.toContain("\u001b");
    const listed = await runAsPerson(["jobs", "list", "--type", "shown"], { env });
    expect(listed.stdout).toMatch(/^JOB +STATE +TYPE +QUEUE +TENANT +TRIES +CREATED +ENDED\n/);
  });

  it("follows a job to its end", async () => {
    const job = await db.oracle.enqueue(gated, {}, { queue: "served" });
    const tail = runCli(["jobs", "tail", job.id, "--json"], env);
    const events = () =>
      tail
        .output()
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line));
    await vi.waitFor(() => expect(events()).toHaveLength(2), 20_000);
    openGate();
    expect(await tail.ended).toBe(0);
    expect(events()).toMatchObject([
      { event: "attempt", attempt_no: 1, status: "RUNNING" },
      { event: "state", state: "RUNNING" },
      { event: "attempt", attempt_no: 1, status: "SUCCEEDED" },
      { event: "state", state: "SUCCEEDED" },
    ]);
  });

  it("cancels, retries and replays", async () => {
    const job = await db.oracle.enqueue("steered", { n: 1 }, { queue: "idle" });
    expect((await cli("jobs", "cancel", job.id)).json.state).toBe("CANCELLED");
    expect(await cli("jobs", "wait", job.id)).toMatchObject({ code: 1, error: { code: "JOB_CANCELLED" } });
    expect((await cli("jobs", "retry", job.id)).json.state).toBe("PENDING");
    await cli("jobs", "cancel", job.id);
    expect((await cli("jobs", "retry", "--all", "--state", "CANCELLED")).json).toEqual({ retried: 1 });
    const replay = await cli("jobs", "replay", job.id, "--input", '{"n": 2}');
    expect(replay.json).toMatchObject({ created: true, replay_of: job.id, type: "steered", queue: "idle" });
    expect((await db.oracle.get(idOf(replay)))?.input).toEqual({ n: 2 });
  });

  it("refuses what the job's state does not allow", async () => {
    const done = idOf(await enqueue("--queue", "served", "--wait"));
    const open = idOf(await enqueue("--queue", "idle"));
    const nobody = "01a1e0ed-0000-7000-8000-000000000000";
    for (const args of [
      ["cancel", done],
      ["retry", done],
      ["retry", open],
      ["result", open],
    ]) {
      expect(await cli("jobs", ...args)).toMatchObject({ code: 3, error: { code: "JOB_PRECONDITION" } });
    }
    for (const verb of ["show", "result", "wait", "tail", "cancel", "retry", "replay"]) {
      expect(await cli("jobs", verb, nobody)).toMatchObject({ code: 3, error: { code: "JOB_NOT_FOUND" } });
    }
  });

  it("finds data that was changed past it", async () => {
    const id = idOf(await enqueue("--queue", "served", "--wait"));
    await db.sql(`BEGIN; SET LOCAL session_replication_role = replica;
      UPDATE oracle.results SET result_payload = '{"n": 2}' WHERE job_id = '${id}'; COMMIT`);
    const end = await cli("verify", id);
    expect(end).toMatchObject({ code: 1, error: { code: "VERIFY_FAILED", field: "content_hash" } });
    expect(end.json).toMatchObject({
      verified: false,
      checks: [{ matches: true }, { matches: false }, { matches: true }],
    });
  });

  it("does not mind a reader that leaves", async () => {
    const command = `"${process.execPath}" dist/cli/main.js jobs list --limit 1000 --json | head -c 1; echo " \${PIPESTATUS[0]}"`;
    const shell = spawn("bash", ["-c", command], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [shell.stdout, shell.stderr]) stream.on("data", (chunk) => (output += chunk));
    await new Promise((resolve) => shell.once("close", resolve));
    expect(output).toBe("{ 0\n");
  });
});

describe("queues", () => {
  it("are listed, paused, resumed and given ageing", async () => {
    await enqueue("--queue", "lane");
    expect((await cli("queues", "pause", "lane")).json).toEqual({ queue: "lane", paused: true });
    expect((await cli("queues", "set", "lane", "--ageing", "1m")).json).toEqual({
      queue: "lane",
      ageing_seconds: 60,
    });
    const { items } = (await cli("queues", "list")).json as { items: { queue: string }[] };
    const lane = items.find(({ queue }) => queue === "lane");
    expect(lane).toEqual({ queue: "lane", paused: true, ageing_seconds: 60, ready: 1, running: 0 });
    expect((await cli("queues", "resume", "lane")).json).toEqual({ queue: "lane", paused: false });
    expect((await cli("queues", "set", "lane", "--ageing", "off")).json.ageing_seconds).toBeNull();
  });
});

describe("migrate", () => {
  const schema = `cli_${process.pid}`;
  const migrate = (...args: string[]) =>
    runToEnd(["migrate", ...args], { env: { ...env, ORACLE_SCHEMA: schema } });
  afterAll(async () => {
    const roles = ["owner", "worker", "server", "tenant"].map((name) => `${schema}_${name}`).join(", ");
    await db.sql(
      `DROP SCHEMA ${schema} CASCADE; DROP OWNED BY ${roles}; DROP ROLE ${roles}, ${schema}_login, ${schema}_team`,
    );
  });

  it("makes the schema once, and says what is applied", async () => {
    const before = await runToEnd(["jobs", "list"], { env: { ...env, ORACLE_SCHEMA: schema } });
    expect(before).toMatchObject({ code: 3, error: { code: "SCHEMA_MISSING" } });
    expect(before.error.message).toContain("oracle-worker migrate");
    const pending = (await migrate("status")).json.items as { applied_at: string | null }[];
    expect(pending.every(({ applied_at }) => applied_at === null)).toBe(true);
    expect((await migrate()).json.applied).toContain("001_init");
    expect((await migrate("up")).json.applied).toEqual([]);
    const done = (await migrate("status")).json.items as { applied_at: string | null; changed: boolean }[];
    expect(done.every(({ applied_at, changed }) => applied_at !== null && !changed)).toBe(true);
  });

  it("prints its SQL, and lets a login act as worker and server", async () => {
    const { stdout } = await runAsPerson(["migrate", "print"], { env: { ORACLE_SCHEMA: schema } });
    expect(stdout).toContain(`CREATE TABLE ${schema}.jobs`);
    const made = await migrate("roles", "--login", `${schema}_login`);
    expect(made.json).toMatchObject({ login: `${schema}_login`, password: expect.stringMatching(/^.{32}$/) });
    expect(made.json.items).toMatchObject([
      { members: [] },
      { members: [`${schema}_login`] },
      { members: [`${schema}_login`] },
      {},
    ]);
    const url = new URL(db.url);
    url.username = `${schema}_login`;
    url.password = String(made.json.password);
    const env = { DATABASE_URL: url.href, ORACLE_SCHEMA: schema, STRICT_ROLES: "1" };
    expect(await runToEnd(["jobs", "list"], { env })).toMatchObject({ code: 0 });
    // Once more changes nothing, and its password is not known any more.
    expect((await migrate("roles", "--login", `${schema}_login`)).json.password).toBeNull();
  });

  it("maps a login to a tenant, unless it is a program's", async () => {
    const mapped = await migrate("roles", "--login", `${schema}_team`, "--tenant", "team-a");
    expect(mapped.json.tenants).toEqual([{ login: `${schema}_team`, tenant_id: "team-a" }]);
    const refused = await migrate("roles", "--login", `${schema}_login`, "--tenant", "team-a");
    expect(refused).toMatchObject({ code: 2, error: { code: "INVALID_ARGUMENT", field: "login" } });
    expect(refused.error.message).toContain(`is a member of ${schema}_server`);
    const program = await migrate("roles", "--login", `${schema}_team`);
    expect(program.error.message).toContain('has the tenant "team-a"');
    const shown = await runAsPerson(["migrate", "roles"], { env: { ...env, ORACLE_SCHEMA: schema } });
    expect(shown.stdout).toMatch(/_team\s+team-a/);
  });

  it("tells a schema that was changed by hand", async () => {
    expect(await migrate("verify")).toMatchObject({ code: 0, json: { differences: [] } });
    await db.sql(`ALTER TABLE ${schema}.jobs ADD COLUMN stray integer`);
    const end = await migrate("verify");
    expect(end).toMatchObject({ code: 1, error: { code: "SCHEMA_DRIFT" } });
    expect(end.stdout).toContain("stray");
    await db.sql(`INSERT INTO ${schema}.migrations (number, name, checksum) VALUES (999, 'future', '')`);
    expect(await migrate("status")).toMatchObject({ code: 3, error: { code: "SCHEMA_NEWER" } });
  });
});
