import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { JobDefinition } from "oracle-worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lease, Outcome } from "../dist/core/job.js";
import { defaultJsonLimits, type JsonValue } from "../dist/core/json.js";
import { loadHandlers } from "../dist/handlers/load.js";
import { Runners } from "../dist/handlers/runners.js";
import { Attempt, type StopReason } from "../dist/worker/attempt.js";
import type { AttemptServices } from "../dist/worker/context.js";
import { execute } from "../dist/worker/execute.js";
import * as module from "./support/behaviours/module.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { pythonFolder } from "./support/python.js";

// One handler's behaviours in every place a handler can run: the outcome is the same.

type Place = "inline" | "thread" | "process" | "warm process" | "Python" | "warm Python";
const places: Place[] = ["inline", "thread", "process", "warm process", "Python", "warm Python"];
const javascript: Place[] = ["inline", "thread", "process", "warm process"];
const shared: Place[] = ["inline", "thread", "warm process", "warm Python"];
/** Where somebody answers a handler's calls. */
const answered = places.filter((place) => place !== "Python");
const apart = places.filter((place) => place !== "inline");

interface Heard {
  said: unknown[];
  artifacts: [name: string, content: unknown][];
}

interface Behaviour {
  how: string;
  input?: Record<string, JsonValue>;
  /** Where it can happen. Default: everywhere. */
  at?: Place[];
  /** What the attempt is told once it runs. */
  stop?: StopReason;
  outcome: unknown | ((place: Place) => unknown);
  heard?: (place: Place) => unknown;
}

const failed = (kind: "retryable" | "terminal", code: string, message: unknown, rest: object = {}) => ({
  kind,
  error: expect.objectContaining({ code, message, retryable: kind === "retryable", ...rest }),
  ...(kind === "retryable" ? { delaySeconds: 0 } : {}),
});
const succeeded = (result: object) => ({
  kind: "succeeded",
  resultText: JSON.stringify(result),
  contentHash: expect.any(String),
});
const reference = { artifact_id: "1", sha256: "2", size: 3 };

const behaviours: Behaviour[] = [
  { how: "doubles", input: { n: 21 }, outcome: succeeded({ n: 42 }) },
  {
    how: "doubles",
    input: { n: "many" },
    outcome: failed("terminal", "INPUT_INVALID", expect.stringContaining("$.n"), { field: "$.n" }),
  },
  {
    how: "breaks the output schema",
    outcome: failed("terminal", "OUTPUT_INVALID", expect.stringContaining("$.n"), { field: "$.n" }),
  },
  {
    how: "returns no JSON",
    outcome: failed("terminal", "OUTPUT_REJECTED", expect.stringMatching(/NaN|float/)),
  },
  { how: "throws", outcome: failed("retryable", "HANDLER_ERROR", "broken", { name: "Unusual" }) },
  {
    how: "throws retryable",
    outcome: { ...failed("retryable", "HANDLER_ERROR", "busy"), delaySeconds: 7 },
  },
  {
    how: "throws terminal",
    outcome: failed("terminal", "HANDLER_ERROR", "hopeless", { name: "TerminalError" }),
  },
  {
    how: "throws a string",
    outcome: (place: Place) =>
      // Python refuses to raise one, which is an exception, too.
      failed("retryable", "HANDLER_ERROR", javascript.includes(place) ? "just a string" : expect.any(String)),
  },
  {
    how: "rejects with a circle",
    at: javascript,
    outcome: failed("retryable", "HANDLER_ERROR", "threw a value that cannot be shown as JSON"),
  },
  {
    how: "throws a NUL",
    outcome: failed("retryable", "HANDLER_ERROR", "zero \ufffd and half \ufffd a pair", { name: "Unusual" }),
  },
  { how: "snoozes", outcome: { kind: "snoozed", delaySeconds: 30 } },
  {
    how: "talks",
    outcome: succeeded({ n: 1 }),
    heard: (place) =>
      place === "Python"
        ? { said: [], artifacts: [["stderr.log", "progress 50% half\ninfo hello n=1\n"]] }
        : {
            said: [
              ["progress", 0.5, "half", { step: 1 }],
              ["info", "hello", { n: 1 }],
            ],
            artifacts: [],
          },
  },
  { how: "talks loosely", outcome: succeeded({ n: 1 }) },
  {
    how: "keeps an artifact",
    outcome: (place: Place) =>
      place === "Python"
        ? failed("terminal", "HANDLER_ERROR", expect.stringContaining("only a warm child"))
        : succeeded({ n: 1, extra: reference }),
    heard: (place) => ({ said: [], artifacts: place === "Python" ? [] : [["notes", { a: [1] }]] }),
  },
  {
    how: "keeps a text",
    at: answered,
    outcome: succeeded({ n: 1, extra: reference }),
    heard: () => ({ said: [], artifacts: [["a.txt", "hello"]] }),
  },
  { how: "heeds its signal", stop: "cancel", outcome: { kind: "cancelled" } },
  { how: "heeds its signal", stop: "timeout", outcome: failed("retryable", "TIMEOUT", expect.any(String)) },
  {
    how: "heeds its signal",
    stop: "shutdown",
    outcome: { kind: "released", cause: "SHUTDOWN", delaySeconds: 0 },
  },
  {
    how: "computes for ever",
    at: apart,
    stop: "timeout",
    outcome: failed("retryable", "TIMEOUT", expect.any(String)),
  },
  { how: "computes for ever", at: apart, stop: "cancel", outcome: { kind: "cancelled" } },
  {
    how: "exits",
    at: apart,
    outcome: failed("retryable", "HANDLER_EXITED", expect.stringContaining("code 3")),
  },
  {
    how: "leaves an error uncaught",
    at: ["thread", "process", "warm process"],
    outcome: {
      ...failed("retryable", "", "uncaught"),
      error: expect.objectContaining({ retryable: true, message: expect.stringContaining("uncaught") }),
    },
  },
  {
    how: "rejects after its return",
    at: ["thread", "process", "warm process"],
    outcome: succeeded({ n: 1 }),
  },
  {
    how: "shows its environment",
    input: { name: "CONFORMANCE_SECRET" },
    outcome: (place: Place) => succeeded({ n: 1, extra: place === "inline" ? "canary" : null }),
  },
];

const programs = fileURLToPath(new URL("./support/behaviours/programs.json", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "oracle-worker-"));
const runners = new Runners();
let definitions: JobDefinition[];
beforeAll(async () => {
  process.env.PYTHONPATH = pythonFolder;
  process.env.CONFORMANCE_SECRET = "canary";
  definitions = [...Object.values(module), ...(await loadHandlers(programs))];
});
afterAll(() => runners.close());

/** One attempt, as a worker executes it. */
async function run(
  place: Place,
  how: string,
  { input = {}, stop }: { input?: Record<string, JsonValue>; stop?: StopReason | undefined } = {},
): Promise<{ outcome: Outcome; heard: Heard; pid: number }> {
  const definition = definitions.find(({ type }) => type === place) as JobDefinition;
  const file = join(folder, randomUUID());
  const lease = {
    jobId: randomUUID(),
    attemptId: randomUUID(),
    attemptNo: 1,
    interruptions: 0,
    tenantId: "default",
    queue: "default",
    type: place,
    idempotencyKey: "key",
    deadline: null,
    input: { how, file, ...input },
  } as unknown as Lease;
  const heard: Heard = { said: [], artifacts: [] };
  const note = (...words: unknown[]) => heard.said.push(words);
  const services: AttemptServices = {
    // No behaviour of the table takes a step.
    records: undefined as never,
    groups: undefined,
    progress: (...report) => note("progress", ...report),
    usage: (used) => note("usage", used),
    log: { info: (...line) => note("info", ...line), warn: note, error: note },
    async artifact(name, content) {
      const isLog = content instanceof Uint8Array && name === "stderr.log";
      heard.artifacts.push([name, isLog ? Buffer.from(content).toString() : content]);
      return reference;
    },
  };
  const attempt = new Attempt(lease, "", 0, Number.POSITIVE_INFINITY);
  const runner = runners.choose(definition, lease);
  const ended = execute(attempt, definition, runner, services, defaultJsonLimits);
  if (stop) {
    await until("the handler to run", async () => existsSync(file) && readFileSync(file, "utf8") !== "");
    attempt.stop(stop);
  }
  return { outcome: await ended, heard, pid: existsSync(file) ? Number(readFileSync(file, "utf8")) : 0 };
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const titleOf = ({ how, input, stop }: Behaviour) =>
  [how, input ? `given ${JSON.stringify(input)}` : "", stop ? `until told to stop: ${stop}` : ""]
    .filter(Boolean)
    .join(", ");

describe.each(places)("a handler in %s", (place) => {
  const rows = behaviours.filter(({ at = places }) => at.includes(place));

  it.each(rows.map((row) => [titleOf(row), row] as const))("%s", async (_title, row) => {
    const { how, input, stop, outcome, heard } = row;
    const end = await run(place, how, { ...(input ? { input } : {}), stop });
    expect(end.outcome).toMatchObject(typeof outcome === "function" ? outcome(place) : outcome);
    if (heard) expect(end.heard).toEqual(heard(place));
    // What could not be talked out of its loop is gone.
    if (how === "computes for ever" && place !== "thread") expect(isAlive(end.pid)).toBe(false);
    // The next attempt is not disturbed. Where each has a process of its own, it could not be.
    if (!shared.includes(place)) return;
    const next = await run(place, "doubles", { input: { n: 4, ms: 20 } });
    expect(next.outcome).toMatchObject(succeeded({ n: 8 }));
  });
});

describe("steps and effects", () => {
  const db = useTestDatabase();
  beforeAll(async () => {
    await db.worker({ jobs: definitions });
  });

  // A one-shot program has nobody who answers.
  it.each(places.filter((place) => place !== "Python"))(
    "are remembered for a handler in %s",
    async (place) => {
      const job = await db.oracle.enqueue(place, { how: "remembers steps and effects" });
      const { n, extra } = (await job.result({ timeoutSeconds: 20 })) as { n: number; extra: object };
      expect((await db.oracle.attempts(job.id)).map(({ status }) => status)).toEqual(["FAILED", "SUCCEEDED"]);
      const effects = await db.oracle.effects(job.id);
      expect(effects).toMatchObject([{ name: "mail", state: "CONFIRMED", dispatches: 1, response: extra }]);
      expect(extra).toEqual({ key: effects[0]?.idempotencyKey, attempt: 1 });
      const steps = await db.oracle.steps(job.id);
      expect(steps).toMatchObject([{ name: "draw", attemptNo: 1, value: n }]);
    },
  );
});
