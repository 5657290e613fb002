import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connect, createWorker, defineJob } from "oracle-worker";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { type TestLogin, useLogins } from "./support/logins.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { runCli } from "./support/process.js";

// Secrets laid out as bait, in the payload, the address, the environment, an error and a log line; none comes out.

const db = useTestDatabase();
const login = useLogins(db);
const handlers = fileURLToPath(new URL("./support/leaky-handlers.mjs", import.meta.url));
const canary = (name: string) => `canary-${name}-${randomBytes(8).toString("hex")}`;
const bait = { payload: canary("payload"), key: `sk-${canary("key")}`, environment: canary("environment") };
let worker: TestLogin;
let canaries: string[];
beforeAll(async () => {
  worker = await login({ roles: ["worker"] });
  canaries = [...Object.values(bait), decodeURIComponent(new URL(worker.url).password)];
});

const expectNone = (text: string) => {
  for (const secret of canaries) expect(text).not.toContain(secret);
};

describe("a job that says everything it knows", () => {
  it("leaves no secret in the log, the errors, the tables or the arguments", {
    timeout: 60_000,
  }, async () => {
    const env = { DATABASE_URL: worker.url, PLAIN_API_KEY: bait.environment, LOG_LEVEL: "debug" };
    const job = await db.oracle.enqueue(
      "leak",
      { password: bait.payload, key: bait.key },
      { maxAttempts: 1 },
    );
    const running = runCli(["work", "--handlers", handlers], env);
    expect((await db.oracle.wait(job.id, { timeoutSeconds: 30 }))?.state).toBe("FAILED_TERMINAL");
    await until("the log line", async () => running.output().includes("leak failed"));
    for (const pid of [running.process.pid as number, ...running.children()]) {
      expectNone(readFileSync(`/proc/${pid}/cmdline`, "utf8"));
    }
    running.process.kill("SIGTERM");
    expect(await running.ended).toBe(0);
    expectNone(running.output());
    // It did speak: the words around the secrets are there.
    expect(running.output()).toMatch(/saw \[redacted\] \[redacted\] postgresql:\/\/\w+:\[redacted\]@/);

    const rows = await db.sql(
      `SELECT j.error_json, a.error_json AS attempt, a.error_message, a.late_output
       FROM oracle.jobs j JOIN oracle.attempts a USING (job_id) WHERE job_id = $1`,
      [job.id],
    );
    expect(rows[0]?.error_json.message).toContain("failed with [redacted] [redacted]");
    expectNone(JSON.stringify(rows));

    const shown = await runToEnd(["jobs", "show", job.id], { env });
    const { error, attempts } = shown.json;
    expectNone(JSON.stringify({ error, attempts }));
    const waited = await runToEnd(["jobs", "wait", job.id], { env });
    expect(waited.code).toBe(1);
    expectNone(waited.stdout + waited.stderr);
    // A payload is the submitter's own; it is shown to whoever asks for the job.
    expect(shown.stdout).toContain(bait.payload);
  });

  it("leaves none in its progress and log either", async () => {
    const told: string[] = [];
    const note = (...said: unknown[]) => void told.push(JSON.stringify(said));
    const definition = defineJob({
      type: "tell",
      input: z.object({ password: z.string() }),
      output: z.null(),
      run({ input, progress, log }) {
        progress(0.1, `at ${input.password}`, { token: "abc", steps: [input.password] });
        log.info(`at ${input.password}`, { more: [`again ${input.password}`], token: "abc" });
        return null;
      },
    });
    await db.worker({
      jobs: [definition],
      queues: ["tell"],
      log: () => ({ info: note, warn: note, error: note }),
    });
    const job = await db.oracle.enqueue("tell", { password: bait.payload }, { queue: "tell" });
    await job.result({ timeoutSeconds: 20 });
    const fields = { more: ["again [redacted]"], token: "[redacted]" };
    expect(told).toEqual([JSON.stringify(["at [redacted]", fields])]);
    expect(await db.oracle.logs(job.id)).toMatchObject([{ message: "at [redacted]", fields }]);
    expect(await db.oracle.attempts(job.id)).toMatchObject([
      { progress: { message: "at [redacted]", details: { token: "[redacted]", steps: ["[redacted]"] } } },
    ]);
  });
});

describe("a program that writes secrets to stderr", () => {
  it("leaves none in its attempt's error, nor in what is kept of its stderr", async () => {
    const script = `let input = "";
      process.stdin.on("data", (chunk) => { input += chunk; }).on("end", () => {
        const { password } = JSON.parse(input).input;
        console.error("Error: " + process.env.PLAIN_API_KEY + " and ${bait.key} and " + password);
        process.exit(3);
      })`;
    const program = defineJob({
      type: "program",
      input: z.object({ password: z.string() }),
      output: z.null(),
      executable: [process.execPath, "-e", script],
      env: ["PLAIN_API_KEY"],
    });
    Object.assign(process.env, { PLAIN_API_KEY: bait.environment, ARTIFACTS: `file:${db.artifacts}` });
    // A process learns what its environment holds when it connects.
    const oracle = await connect({ databaseUrl: db.url });
    const worker = await createWorker(oracle, { jobs: [program], queues: ["stderr"] });
    const job = await oracle.enqueue(
      program,
      { password: bait.payload },
      { queue: "stderr", maxAttempts: 1 },
    );
    const ended = await oracle.wait(job.id, { timeoutSeconds: 20 });
    await worker.stop();
    delete process.env.PLAIN_API_KEY;
    delete process.env.ARTIFACTS;
    expect(ended?.error?.message).toContain("Error: [redacted] and [redacted] and [redacted]");
    expectNone(JSON.stringify([ended, await oracle.attempts(job.id)]));
    const [kept] = await oracle.artifacts(job.id);
    const content = (await oracle.openArtifact(kept?.artifactId ?? ""))?.content;
    expect(await text(content ?? Readable.from(""))).toBe(
      "Error: [redacted] and [redacted] and [redacted]\n",
    );
    await oracle.close();
  });
});

describe("the log", () => {
  it("hides what anybody else says too", async () => {
    const script = `const { createLogger } = await import(process.env.LOG);
      const logger = createLogger("info");
      logger.error({ password: process.env.BAIT, error: new Error(\`at \${process.env.KEY}\`) }, \`saw \${process.env.KEY}\`);`;
    const { stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      env: {
        LOG: new URL("../dist/observe/log.js", import.meta.url).href,
        BAIT: bait.payload,
        KEY: bait.key,
      },
    });
    expect(JSON.parse(stderr)).toMatchObject({
      msg: "saw [redacted]",
      password: "[redacted]",
      error: { type: "Error", message: "at [redacted]" },
    });
    expectNone(stderr);
  });
});

describe("a command's error", () => {
  it.each(["--json", "--"])("does not show the address's password (%s)", async (flag) => {
    const url = new URL(worker.url);
    url.port = "1";
    const args = ["jobs", "list", ...(flag === "--json" ? [flag] : [])];
    const end = await runAsPerson(args, { env: { DATABASE_URL: url.href } });
    expect(end.code).toBe(1);
    expectNone(end.stdout + end.stderr);
  });

  it("does not show one in a value that is wrong", async () => {
    const wrong = await runToEnd(["jobs", "show", `postgresql://u:${bait.payload}@h`], {
      env: { DATABASE_URL: worker.url },
    });
    expect(wrong.error).toMatchObject({ code: "INVALID_ARGUMENT", field: "id" });
    expectNone(wrong.stderr);
    const setting = await runToEnd(["jobs", "list"], {
      env: { DATABASE_URL: `mysql://u:${bait.payload}@h` },
    });
    expect(setting.error.code).toBe("INVALID_SETTING");
    expectNone(setting.stderr);
  });
});
