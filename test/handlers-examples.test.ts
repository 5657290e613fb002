import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { useTestDatabase } from "./support/oracle.js";
import { runCli } from "./support/process.js";

// examples/handlers/ as its files say: Python, shell, C and a thread, through the real command line.

const db = useTestDatabase();
const examples = fileURLToPath(new URL("../examples/handlers", import.meta.url));
let folder: string;

beforeAll(() => {
  // The compiler writes beside its source; not in the checkout.
  folder = join(mkdtempSync(join(tmpdir(), "oracle-worker-")), "handlers");
  cpSync(examples, folder, { recursive: true });
  execFileSync("cc", ["-O2", "-Wall", "-Werror", "-o", join(folder, "primes"), join(folder, "primes.c")]);
});

async function work(handlers: string): Promise<string> {
  const env = { DATABASE_URL: db.url, POLL_INTERVAL: "100ms" };
  const worker = runCli(["work", "--handlers", handlers, "--drain"], env);
  expect(await worker.ended, worker.output()).toBe(0);
  return worker.output();
}

/** Submits the jobs, lets one worker drain them, and returns each job's end. */
async function run(jobs: [type: string, input: unknown][], handlers = folder) {
  const handles = await Promise.all(
    jobs.map(([type, input]) => db.oracle.enqueue(type, input, { maxAttempts: 1 })),
  );
  const output = await work(handlers);
  const ends = await Promise.all(
    handles.map(async ({ id }) => {
      const job = await db.oracle.get(id);
      return { state: job?.state, error: job?.error, result: (await db.oracle.result(id))?.payload };
    }),
  );
  return { ends, output };
}

describe("examples/handlers", { timeout: 60_000 }, () => {
  it("serves a folder: Python warm and one-shot, shell, C, and a thread", async () => {
    const { ends } = await run([
      ["score_text", { text: "A good and great day, with one bad hour." }],
      ["extract_links", { html: '<p><a href="https://a.example/">a</a> <a href="/b">b</a></p>' }],
      ["machine_info", {}],
      ["count_primes", { below: 100_000 }],
      ["nearest_vectors", { query: [1, 0], vectors: [[0, 1], [1, 1], [2, 0]], most: 2 }], // biome-ignore format: short
    ]);
    expect(ends.map(({ error }) => error)).toEqual([null, null, null, null, null]);
    expect(ends.map(({ result }) => result)).toEqual([
      { score: expect.closeTo(1 / 3) },
      { links: ["https://a.example/", "/b"] },
      { kernel: execFileSync("uname", ["-s"], { encoding: "utf8" }).trim(), machine: expect.any(String) },
      { count: 9592 },
      [
        { index: 2, similarity: 1 },
        { index: 1, similarity: expect.closeTo(Math.SQRT1_2) },
      ],
    ]);
  });

  it("serves many jobs, also by the manifest alone", async () => {
    const many = Array.from({ length: 200 }, () => ["score_text", { text: "all good" }] as [string, unknown]);
    const { ends } = await run(many, join(folder, "handlers.json"));
    expect(new Set(ends.map(({ state }) => state))).toEqual(new Set(["SUCCEEDED"]));
  });

  it("ends what breaks the manifest's schemas, and what a handler finds hopeless", async () => {
    const { ends } = await run([
      ["score_text", { text: "" }],
      ["count_primes", { below: "many" }],
      ["score_text", { text: "!!!" }],
    ]);
    expect(ends.map(({ error }) => [error?.code, error?.field ?? error?.name])).toEqual([
      ["INPUT_INVALID", "$.text"],
      ["INPUT_INVALID", "$.below"],
      ["HANDLER_ERROR", "TerminalError"],
    ]);
    expect(new Set(ends.map(({ state }) => state))).toEqual(new Set(["FAILED_TERMINAL"]));
  });

  it("fit on a screen and begin with their own names", () => {
    for (const name of readdirSync(examples).filter((each) => each !== "handlers.json")) {
      const text = readFileSync(join(examples, name), "utf8");
      expect(text.split("\n").length, `lines of ${name}`).toBeLessThanOrEqual(50);
      expect(text.split("\n").slice(0, 2).join("\n")).toContain(`examples/handlers/${name}`);
    }
  });
});
