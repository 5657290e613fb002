import { mkdtempSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { useTestDatabase } from "./support/oracle.js";

// Wrong calls, wrong input, wrong settings, no database: a coded error, the right exit code, nothing stored.

const db = useTestDatabase();
let env: Record<string, string>;
const folder = mkdtempSync(join(tmpdir(), "oracle-worker-cli-"));
beforeAll(async () => {
  env = { DATABASE_URL: db.url };
});

const id = "01a1e0ed-0000-7000-8000-000000000000";
const enqueue = ["enqueue", "t", "--input", "1"];

describe.concurrent("wrong usage ends with 2 and names what is wrong", () => {
  it.each<[string[], string | undefined]>([
    [[], undefined],
    [["jobs"], undefined],
    [["bogus"], "bogus"],
    [["jobs", "lst"], "lst"],
    [["jobs", "list", "--bogus"], "--bogus"],
    [["jobs", "show"], "id"],
    [["jobs", "show", id, "more"], "show"],
    [["jobs", "show", "not-a-uuid"], "id"],
    [["jobs", "list", "--limit", "x"], "--limit"],
    [["jobs", "list", "--limit", "-1"], "--limit"],
    [["jobs", "list", "--limit", "1001"], "--limit"],
    [["jobs", "list", "--state", "NOPE"], "--state"],
    [["jobs", "list", "--after", "x"], "--after"],
    [["jobs", "wait", id, "--timeout", "-5"], "--timeout"],
    [["jobs", "retry"], "id"],
    [["jobs", "retry", id, "--all"], "--all"],
    [["jobs", "retry", id, "--state", "CANCELLED"], "--state"],
    [["queues", "set", "q", "--ageing", "0"], "--ageing"],
    [["queues", "set", "q"], "--ageing"],
    [["queues", "pause", "q".repeat(201)], "queue"],
    [["migrate", "sideways"], "step"],
    [["migrate", "--login", "x"], "--login"],
    [["migrate", "roles", "--tenant", "x"], "--tenant"],
    [["migrate", "roles", "--role", "worker"], "--role"],
    [["migrate", "roles", "--login", "x", "--role", "owner"], "--role"],
    [["migrate", "roles", "--login", "x", "--role", "worker", "--tenant", "x"], "--tenant"],
    [["tenants"], undefined],
    [["tenants", "token", "t"], "--role"],
    [["tenants", "token", "t", "--role", "king"], "--role"],
    [["tenants", "token", "--role", "admin"], "tenant"],
    [["tenants", "token", "t", "--all", "--role", "admin"], "tenant"],
    [["tenants", "token", "t".repeat(201), "--role", "admin"], "tenant"],
    [["tenants", "revoke", "nonsense"], "token"],
    [["enqueue"], "type"],
    [["enqueue", "t"], "--input"],
    [["enqueue", "t", "--input"], "--input"],
    [["enqueue", "t".repeat(201), "--input", "1"], "type"],
    [["enqueue", "t", "--input", "@/no/such/file"], "--input"],
    [["enqueue", "--bulk", "/no/such/file"], "--bulk"],
    [[...enqueue, "--bulk", "-"], "--input"],
    [[...enqueue, "--priority", "1000001"], "--priority"],
    [[...enqueue, "--priority", "1e3"], "--priority"],
    [[...enqueue, "--max-attempts", "0"], "--max-attempts"],
    [[...enqueue, "--timeout", "-1"], "--timeout"],
    [[...enqueue, "--timeout", "99999999"], "--timeout"],
    [[...enqueue, "--run-after", "tomorrow"], "--run-after"],
    [[...enqueue, "--run-after", "+999999h"], "--run-after"],
    [[...enqueue, "--deadline", "2030-02-30T00:00:00Z"], "--deadline"],
    [[...enqueue, "--dedupe", "maybe"], "--dedupe"],
    [[...enqueue, "--wait", "-1"], "--wait"],
    [[...enqueue, "--key", ""], "--key"],
    [[...enqueue, "--database-url", "nonsense"], "--database-url"],
  ])("%j", async (args, field) => {
    const end = await runToEnd(args, { env });
    expect(end).toMatchObject({ code: 2, stdout: "", error: { code: "INVALID_ARGUMENT" } });
    expect(end.error.field).toBe(field);
    expect(end.stderr.trim().split("\n")).toHaveLength(1);
  });

  it("is one plain line for people", async () => {
    const end = await runAsPerson(["jobs", "list", "--limit", "x"], { env });
    expect(end.stderr).toBe(
      'error INVALID_ARGUMENT: --limit is "x"; it must be a whole number from 1 to 1000.\n',
    );
  });
});

describe.concurrent("input that cannot be stored unchanged", () => {
  const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  const large = (bytes: number) => JSON.stringify("x".repeat(bytes - 2));
  it.each<[string, string, string, string | undefined]>([
    ["malformed", '{"a": }', "INVALID_JSON", undefined],
    ["empty", "", "INVALID_JSON", undefined],
    ["NUL", '{"a": {"b": ["\\u0000"]}}', "PAYLOAD_REJECTED", "$.a.b[0]"],
    ["a lone surrogate", '{"a": "\\ud800"}', "PAYLOAD_REJECTED", "$.a"],
    ["NaN", '{"a": NaN}', "INVALID_JSON", undefined],
    ["a number past doubles", '{"a": 1e400}', "PAYLOAD_REJECTED", "$.a"],
    ["an integer that would round", '{"a": 9007199254740993}', "PAYLOAD_REJECTED", "$.a"],
    ["65 levels", deep(65), "PAYLOAD_TOO_DEEP", undefined],
    ["1 MiB and one byte", large(1_048_577), "PAYLOAD_TOO_LARGE", undefined],
    ["far too much", large(4_000_000), "PAYLOAD_TOO_LARGE", undefined],
  ])("refuses %s", async (_what, stdin, code, field) => {
    const end = await runToEnd(["enqueue", "refused", "--input", "-"], { env, stdin });
    expect(end).toMatchObject({ code: 2, stdout: "", error: { code } });
    if (field !== undefined) expect(end.error.field).toBe(field);
  });

  it("takes 64 levels and exactly 1 MiB", async () => {
    for (const stdin of [deep(64), `${large(1_048_576)}\n`]) {
      expect(await runToEnd(["enqueue", "taken", "--input", "-"], { env, stdin })).toMatchObject({ code: 0 });
    }
  });

  it("has stored none of it", async () => {
    expect(await db.sql("SELECT 1 FROM oracle.jobs WHERE job_type = 'refused'")).toEqual([]);
  });
});

describe.concurrent("settings", () => {
  const inFolder = (name: string, files: Record<string, string>) => {
    const cwd = mkdtempSync(join(folder, name));
    for (const [file, content] of Object.entries(files)) writeFileSync(join(cwd, file), content);
    return cwd;
  };

  it("come from a file, the environment and flags, the later the stronger", async () => {
    const cwd = inFolder("order", {
      "oracle-worker.config.json": '{"ORACLE_SCHEMA": "from_file", "CONCURRENCY": 7}',
    });
    const fromFile = await runToEnd(["migrate", "print"], { cwd });
    expect(fromFile.json.sql).toContain("CREATE TABLE from_file.jobs");
    const fromEnvironment = await runToEnd(["migrate", "print"], { cwd, env: { ORACLE_SCHEMA: "from_env" } });
    expect(fromEnvironment.json.sql).toContain("CREATE TABLE from_env.jobs");
    const dead = { DATABASE_URL: "postgresql://127.0.0.1:1/none", ORACLE_SCHEMA: "oracle" };
    const fromFlag = await runToEnd(["--database-url", db.url, "queues", "list"], { cwd, env: dead });
    expect(fromFlag.code).toBe(0);
  });

  it("come from a TypeScript file", async () => {
    const content = "const schema: string = 'from_ts'; export default { ORACLE_SCHEMA: schema };";
    const cwd = inFolder("ts", { "oracle-worker.config.ts": content });
    expect((await runToEnd(["migrate", "print"], { cwd })).json.sql).toContain("CREATE TABLE from_ts.jobs");
  });

  it.each<[string, string, Record<string, string>, Record<string, string>]>([
    ["an unknown one", "NOPE", { "oracle-worker.config.json": '{"NOPE": 1}' }, {}],
    ["a value of the wrong kind", "QUEUES", { "oracle-worker.config.json": '{"QUEUES": {}}' }, {}],
    ["a broken file", "oracle-worker.config.json", { "oracle-worker.config.json": "{" }, {}],
    [
      "two files",
      "oracle-worker.config.ts",
      { "oracle-worker.config.json": "{}", "oracle-worker.config.ts": "" },
      {},
    ],
    ["a wrong number", "MAX_PAYLOAD_BYTES", {}, { MAX_PAYLOAD_BYTES: "-1" }],
    ["a wrong schema", "ORACLE_SCHEMA", {}, { ORACLE_SCHEMA: "a;drop table" }],
    ["a wrong address", "DATABASE_URL", {}, { DATABASE_URL: "localhost" }],
  ])("are refused with %s", async (_what, field, files, more) => {
    const end = await runToEnd(["jobs", "list"], { cwd: inFolder("bad", files), env: { ...env, ...more } });
    expect(end).toMatchObject({ code: 2, error: { code: "INVALID_SETTING", field } });
  });
});

describe.concurrent("a database that cannot be used", () => {
  it("is tried for a few seconds, then given up with one line", async () => {
    const startedAt = performance.now();
    const dead = { DATABASE_URL: "postgresql://someone:secret@127.0.0.1:1/none" };
    const end = await runAsPerson(["jobs", "list"], { env: dead });
    expect(end.code).toBe(1);
    expect(end.stderr).toMatch(/^error DATABASE_UNREACHABLE: .+\n$/);
    expect(end.stderr).not.toContain("secret");
    expect(performance.now() - startedAt).toBeGreaterThan(3_000);
  });

  it("is given up also when it never answers", async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as { port: number };
    const end = await runToEnd(["migrate"], { env: { DATABASE_URL: `postgresql://127.0.0.1:${port}/none` } });
    silent.close();
    expect(end).toMatchObject({ code: 1, error: { code: "DATABASE_UNREACHABLE" } });
  });

  it("is reached as soon as it is up again", async () => {
    const { hostname, port } = new URL(db.url);
    const gate = createServer((inward) => {
      const outward = connect(Number(port), hostname, () => inward.pipe(outward).pipe(inward));
      for (const socket of [inward, outward]) socket.on("error", () => {});
    });
    // Takes a port, leaves it, and opens it again while the command is trying.
    const listen = (at: number) => new Promise<void>((resolve) => gate.listen(at, "127.0.0.1", resolve));
    await listen(0);
    const at = (gate.address() as { port: number }).port;
    await new Promise((resolve) => gate.close(resolve));
    const url = new URL(db.url);
    url.host = `127.0.0.1:${at}`;
    const running = runToEnd(["jobs", "list"], { env: { DATABASE_URL: url.href } });
    await sleep(1500);
    await listen(at);
    expect((await running).code).toBe(0);
    gate.close();
  });

  it("is refused at once for a wrong password", async (context) => {
    const url = new URL(db.url);
    url.password = "wrong";
    const trusts = await trustsEverybody(url.href);
    if (trusts) context.skip("this server lets every password in");
    const end = await runToEnd(["jobs", "list"], { env: { DATABASE_URL: url.href } });
    expect(end).toMatchObject({ code: 2, error: { code: "DATABASE_AUTH" } });
    expect(end.stderr).not.toContain("wrong");
  });
});

async function trustsEverybody(url: string): Promise<boolean> {
  const client = new pg.Client(url);
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}
