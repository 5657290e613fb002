import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { handlers, runCli } from "./support/process.js";

// Progress, logs and artifacts through the real command line, from a real worker process.

const db = useTestDatabase();
const folder = mkdtempSync(join(tmpdir(), "oracle-worker-reports-"));
const name = "../../e\u202evil\u0007/report.bin";
const bytes = Buffer.from(Array.from({ length: 65_536 }, (_, n) => n % 256));
let env: Record<string, string>;
let jobId: string;
let tailed: Record<string, unknown>[];
const cli = (...args: string[]) => runToEnd(args, { env, cwd: folder });

beforeAll(async () => {
  env = { DATABASE_URL: db.url, ARTIFACTS: `file:${db.artifacts}`, POLL_INTERVAL: "100ms" };
  const gate = join(folder, "gate");
  const worker = runCli(["work", "--handlers", handlers], env);
  const job = await db.oracle.enqueue("reporting", { gate, name });
  jobId = job.id;
  const tail = runCli(["jobs", "tail", jobId, "--json"], env);
  // What is said is seen while it runs.
  await until("the first line and the progress", async () => /"progress".*half way/.test(tail.output()));
  expect((await db.oracle.get(jobId))?.state).toBe("RUNNING");
  writeFileSync(gate, "");
  expect(await tail.ended).toBe(0);
  tailed = tail
    .output()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  worker.process.kill("SIGTERM");
  await worker.ended;
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

describe("jobs tail", () => {
  it("follows log lines and progress live, in the order in which they happened", () => {
    const told = tailed.map(({ event, status, state, message, fraction }) => {
      return [event, status ?? state ?? message ?? fraction];
    });
    expect(told.filter(([event]) => event === "log")).toEqual([
      ["log", "waiting"],
      ["log", "\u001b[31mred\nand on"],
      ["log", "done"],
    ]);
    expect(told.slice(-3)).toEqual([
      ["progress", 1],
      ["attempt", "SUCCEEDED"],
      ["state", "SUCCEEDED"],
    ]);
    const place = (event: string, what: unknown) =>
      told.findIndex((each) => each[0] === event && each[1] === what);
    expect(place("attempt", "RUNNING")).toBeLessThan(place("log", "waiting"));
    expect(place("log", "waiting")).toBeLessThan(place("log", "done"));
    expect(tailed.find(({ event }) => event === "progress")).toMatchObject({
      job_id: jobId,
      attempt_no: 1,
      fraction: 0.5,
      message: "half way",
      details: { at: "the gate" },
    });
    expect(tailed.find(({ event }) => event === "log")).toMatchObject({
      job_id: jobId,
      attempt_no: 1,
      seq: 1,
      level: "info",
      fields: { gate: expect.any(String) },
    });
  });

  it("shows all of it to people, on lines that cannot steer a terminal", async () => {
    const { stdout } = await runAsPerson(["jobs", "tail", jobId], { env });
    expect(stdout).toContain("info  waiting");
    expect(stdout).toContain('warn  \\x1b[31mred | and on  {"big":"18446744073709551616"}');
    expect(stdout).toMatch(/100 %\n/);
    expect(stdout).not.toContain("\u001b");
  });
});

describe("jobs show", () => {
  it("has progress, the last log lines and the artifacts", async () => {
    const { json } = await cli("jobs", "show", jobId);
    expect(json.attempts).toMatchObject([
      { attempt_no: 1, progress: { fraction: 1, at: expect.any(String) } },
    ]);
    expect(json.logs).toMatchObject([{ message: "waiting" }, { level: "warn" }, { seq: 3, message: "done" }]);
    expect(json.artifacts).toMatchObject([
      { name: "small.json", type: "json", media_type: "application/json", size: 18 },
      { name: "text.txt", type: "text", attempt_no: 1 },
      { name, type: "bytes", size: 65_536, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
  });

  it("shows them to people, on lines that cannot steer a terminal", async () => {
    const { stdout } = await runAsPerson(["jobs", "show", jobId], { env });
    expect(stdout).toMatch(/PROGRESS.*\n.*100 %/);
    expect(stdout).toMatch(/Last log lines\n {2}\d\d:\d\d:\d\d 1 info {2}waiting/);
    expect(stdout).toMatch(
      /Artifacts\n {2}NAME +ATTEMPT +SIZE +TYPE +SHA256\n {2}small\.json +1 +18 +application\/json/,
    );
    expect(stdout).not.toContain("\u001b");
  });
});

describe("jobs artifact", () => {
  const raw = (...args: string[]) => {
    const main = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
    return spawnSync(process.execPath, [main, "jobs", "artifact", jobId, ...args], {
      env: { PATH: process.env.PATH, ...env },
      maxBuffer: 1_000_000,
    });
  };

  it("writes the bytes, and nothing else, to stdout", () => {
    expect(raw(name).stdout.equals(bytes)).toBe(true);
    expect(raw("small.json").stdout.toString()).toBe('{"a":[true],"b":1}');
    // Into a pipe it goes as it is.
    expect(raw("text.txt").stdout.toString().endsWith("line\n\u001b[31m")).toBe(true);
  });

  it("finds it by its digest and its id too", async () => {
    const { artifacts } = (await cli("jobs", "show", jobId)).json as { artifacts: Record<string, string>[] };
    const { sha256 = "", artifact_id: id = "" } = artifacts[2] ?? {};
    for (const which of [sha256, id]) expect(raw(which).stdout.equals(bytes)).toBe(true);
  });

  it("writes a file, whole or not at all, and under a name that is safe", async () => {
    const output = join(folder, "out");
    mkdirSync(output);
    const end = await cli("jobs", "artifact", jobId, name, "--output", output);
    const file = join(output, "_.._e_vil__report.bin");
    expect(end).toMatchObject({ code: 0, json: { file, name, size: 65_536 } });
    expect(readdirSync(output)).toEqual(["_.._e_vil__report.bin"]);
    expect(readFileSync(file).equals(bytes)).toBe(true);
    // A link of that name is replaced, and what it led to stays as it was.
    const victim = join(folder, "victim");
    writeFileSync(victim, "untouched");
    symlinkSync(victim, join(output, "link"));
    await cli("jobs", "artifact", jobId, name, "--output", join(output, "link"));
    expect(readFileSync(victim, "utf8")).toBe("untouched");
    expect(readFileSync(join(output, "link")).equals(bytes)).toBe(true);
  });

  it("refuses what is not there, cannot be written or makes no sense", async () => {
    expect(await cli("jobs", "artifact", jobId, "nothing", "--output", "x")).toMatchObject({
      code: 3,
      error: { code: "ARTIFACT_NOT_FOUND", field: "name" },
    });
    const nobody = "01a1e0ed-0000-7000-8000-000000000000";
    expect(await cli("jobs", "artifact", nobody, "x", "--output", "x")).toMatchObject({
      code: 3,
      error: { code: "JOB_NOT_FOUND" },
    });
    expect(await cli("jobs", "artifact", jobId, "text.txt")).toMatchObject({
      code: 2,
      error: { code: "INVALID_ARGUMENT", field: "--output" },
    });
    expect(await cli("jobs", "artifact", jobId, "text.txt", "--output", "no/such/folder")).toMatchObject({
      code: 2,
      error: { code: "INVALID_ARGUMENT", field: "--output" },
    });
  });

  it("does not mind a reader that leaves", () => {
    const command = `"${process.execPath}" dist/cli/main.js jobs artifact ${jobId} text.txt | head -c 4; echo " \${PIPESTATUS[0]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", command], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      encoding: "utf8",
    });
    expect([stdout, stderr]).toEqual(["line 0\n", ""]);
  });

  it("says when the bytes were changed or are gone, and leaves no file; verify names them", async () => {
    const verify = async () => {
      const { code, json } = await cli("verify", jobId);
      const checks = (json.checks ?? []) as { name: string; computed: string; matches: boolean }[];
      return {
        code,
        wrong: checks.filter(({ matches }) => !matches).map(({ name, computed }) => [name, computed]),
      };
    };
    expect(await verify()).toEqual({ code: 0, wrong: [] });
    const [row] = await db.sql(
      "SELECT reference FROM oracle.artifacts WHERE job_id = $1 AND name = 'text.txt'",
      [jobId],
    );
    const file = join(db.artifacts, row?.reference);
    writeFileSync(file, "forged");
    const output = join(folder, "forged");
    const read = () => cli("jobs", "artifact", jobId, "text.txt", "--output", output);
    expect(await read()).toMatchObject({ code: 1, error: { code: "VERIFY_FAILED" } });
    const unreadable = (why: RegExp) => ({
      code: 1,
      wrong: [['artifact "text.txt"', expect.stringMatching(why)]],
    });
    expect(await verify()).toEqual(unreadable(/not those of their digest/));
    rmSync(file);
    expect(await verify()).toEqual(unreadable(/ENOENT/));
    expect(await read()).toMatchObject({ code: 1, error: { code: "ARTIFACT_STORE" } });
    expect(readdirSync(folder).filter((each) => each.includes("forged"))).toEqual([]);
    expect(existsSync(output)).toBe(false);
  });
});
