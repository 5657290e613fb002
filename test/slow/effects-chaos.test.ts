import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findEffects } from "../../dist/store/list-effects.js";
import { runToEnd } from "../support/cli.js";
import { until, useTestDatabase } from "../support/oracle.js";

// Workers are killed before, during and after every effect of every kind, and the server that the effects reach keeps
// its own record. Afterwards the two records are held against each other.

/** Of each language. */
const JOBS = Number(process.env.CHAOS_EFFECT_JOBS ?? 72);
const types = ["order", "order in Python"];
const WORKERS = 6;
const kinds = ["idempotent", "reconcilable", "unsafe"];
/** Where an attempt is killed: by itself, or by the server it speaks to. */
const points = ["intent", "before", "received", "performed", "after", "recorded"];
const db = useTestDatabase();
const here = (path: string) => fileURLToPath(new URL(`../support/effects/${path}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "oracle-worker-"));
const serverLog = join(folder, "server.log");
const deaths = join(folder, "deaths");
const processes = new Set<ChildProcess>();
let url = "";
let over = false;
let kills = 0;

function start(script: string, env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, [here(script)], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: db.url, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  processes.add(child);
  child.once("exit", () => processes.delete(child));
  return child;
}

/** Keeps one worker process alive until it is all over. */
async function keepWorker(): Promise<void> {
  while (!over) {
    const child = start("worker.mjs", { HANDLERS: `${here("jobs.mjs")},${here("orders.json")}` });
    const [, signal] = await once(child, "exit");
    if (signal === "SIGKILL") kills++;
  }
}

/** What an operator does with held jobs: looks at the other side, then says what became of the effect. */
async function resolveHeld(): Promise<{ byCommand: number; all: number }> {
  const count = { byCommand: 0, all: 0 };
  while (!over) {
    const held = await findEffects(db.oracle.db, { state: "IN_DOUBT", limit: 100 });
    for (const { effectId, kind, jobId } of held) {
      if (kind !== "unsafe" || (await db.oracle.get(jobId))?.holdReason !== "effect in doubt") continue;
      const answer = await fetch(`${url}/lookup`, {
        method: "POST",
        body: JSON.stringify({ key: effectId }),
      });
      const found = (await answer.json()) as { happened: boolean; response?: object };
      const outcome = found.happened ? "confirmed" : "retry";
      const evidence = "looked at the server";
      if (count.byCommand < 6) {
        const response = found.happened ? ["--response", JSON.stringify(found.response)] : [];
        const args = [
          "effects",
          "resolve",
          effectId,
          "--outcome",
          outcome,
          "--evidence",
          evidence,
          ...response,
        ];
        expect((await runToEnd(args, { env: { DATABASE_URL: db.url } })).code).toBe(0);
        count.byCommand++;
      } else {
        const response = found.happened ? { response: found.response as never } : {};
        await db.oracle.resolveEffect(effectId, { outcome, evidence, ...response });
      }
      count.all++;
    }
    await sleep(100);
  }
  return count;
}

beforeAll(async () => {
  await db.sql(`
    CREATE TABLE public.history (n bigint GENERATED ALWAYS AS IDENTITY, effect_id uuid, kind text, was text, became text,
      same_attempt boolean, resolved_by text);
    CREATE FUNCTION public.keep_history() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
      INSERT INTO public.history (effect_id, kind, was, became, same_attempt, resolved_by)
      VALUES (NEW.effect_id, NEW.kind, CASE WHEN TG_OP = 'UPDATE' THEN OLD.state::text END, NEW.state,
        TG_OP = 'UPDATE' AND NEW.attempt_no = OLD.attempt_no, NEW.resolved_by);
      RETURN NULL;
    END $$;
    CREATE TRIGGER history AFTER INSERT OR UPDATE ON oracle.effects FOR EACH ROW EXECUTE FUNCTION public.keep_history();`);
  mkdirSync(deaths);
  const server = start("server.mjs", { EFFECT_LOG: serverLog });
  const [port] = await once(server.stdout as NodeJS.ReadableStream, "data");
  url = `http://127.0.0.1:${String(port).trim()}`;
});
afterAll(() => {
  over = true;
  for (const child of processes) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Where job `n` dies, once or twice; all together die everywhere many times. */
function killsOf(n: number): { kind: string; point: string }[] {
  const all = kinds.flatMap((kind) => points.map((point) => ({ kind, point })));
  return [n, n * 5 + 7].slice(0, 1 + (n % 2)).map((at) => all[at % all.length] as (typeof all)[number]);
}

/** From which state an effect of a kind may go where; by a person's word where it says so. */
const allowed: Record<string, string[]> = {
  idempotent: ["DISPATCHED>IN_DOUBT", "IN_DOUBT>DISPATCHED", "DISPATCHED>CONFIRMED"],
  reconcilable: [
    "DISPATCHED>IN_DOUBT",
    "IN_DOUBT>CONFIRMED",
    "IN_DOUBT>FAILED",
    "FAILED>DISPATCHED",
    "DISPATCHED>CONFIRMED",
  ],
  unsafe: [
    "DISPATCHED>IN_DOUBT",
    "IN_DOUBT>CONFIRMED by a person",
    "IN_DOUBT>PLANNED by a person",
    "PLANNED>DISPATCHED",
    "DISPATCHED>CONFIRMED",
  ],
};

interface Line {
  event: "received" | "performed" | "thought" | "broken";
  key: string;
  kind: string;
  body: object;
  state: string | null;
  asIntended: boolean;
  remembered: boolean;
}

it("makes every effect once, whoever is killed when", async () => {
  for (const type of types) {
    const folder = join(deaths, type);
    mkdirSync(folder);
    const inputs = Array.from({ length: JOBS }, (_, n) => ({ n, url, deaths: folder, kills: killsOf(n) }));
    await db.oracle.enqueueMany(type, inputs, { maxAttempts: 1000 });
  }
  const workers = Array.from({ length: WORKERS }, keepWorker);
  const resolving = resolveHeld();
  const unfinished = "SELECT count(*)::int AS n FROM oracle.jobs WHERE completed_at IS NULL";
  await until("all jobs to end", async () => (await db.sql(unfinished))[0]?.n === 0, 400_000);
  over = true;
  for (const child of processes) if (child.spawnargs[1]?.endsWith("worker.mjs")) child.kill("SIGTERM");
  await Promise.all(workers);
  const resolved = await resolving;

  // Every death happened, many times.
  const least = Math.floor(JOBS / (kinds.length * points.length));
  for (const type of types) {
    const died = readdirSync(join(deaths, type));
    for (const death of kinds.flatMap((kind) => points.map((point) => `${kind} ${point} `))) {
      const times = died.filter((name) => name.startsWith(death)).length;
      expect(times, `${type}: ${death}`).toBeGreaterThanOrEqual(least);
    }
  }
  const lines = readFileSync(serverLog, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
  const received = lines.filter(({ event }) => event === "received");
  expect(lines.filter(({ event }) => event === "broken")).toEqual([]);

  // What the server saw was on record before, with this very body, and had no outcome yet.
  for (const line of received) {
    expect(["DISPATCHED", "IN_DOUBT"], JSON.stringify(line)).toContain(line.state);
    expect(line.asIntended, JSON.stringify(line)).toBe(true);
  }
  // One key, one body; one performance each, whatever was lost on the way.
  const bodies = new Map<string, string>();
  for (const { key, body } of received) {
    const text = JSON.stringify(body);
    expect(bodies.get(key) ?? text, key).toBe(text);
    bodies.set(key, text);
  }
  const performed = lines.filter(({ event }) => event === "performed").map(({ key }) => key);
  expect(performed.sort()).toEqual([...bodies.keys()].sort());
  expect(bodies.size).toBe(types.length * JOBS * kinds.length);
  // Nothing was paid for again that was remembered.
  expect(lines.filter(({ event, remembered }) => event === "thought" && remembered)).toEqual([]);

  // Each effect went the way of its kind, and came to its end.
  const history = await db.sql("SELECT * FROM public.history ORDER BY n");
  for (const { effect_id, kind, was, became, same_attempt, resolved_by } of history) {
    // An attempt whose leave came late asks for it once more before it sends.
    if (was === "DISPATCHED" && became === "DISPATCHED" && same_attempt) continue;
    const edge = `${was}>${became}${was === "IN_DOUBT" && resolved_by ? " by a person" : ""}`;
    expect(["null>DISPATCHED", ...(allowed[kind] ?? [])], `${kind} ${effect_id}`).toContain(edge);
  }
  const [row] = await db.sql(`
    SELECT
      (SELECT count(*)::int FROM oracle.jobs WHERE state = 'SUCCEEDED') AS succeeded,
      (SELECT count(*)::int FROM oracle.effects WHERE state = 'CONFIRMED') AS confirmed,
      (SELECT count(*)::int FROM oracle.effects e JOIN oracle.results r USING (job_id)
        WHERE r.result_payload -> e.kind::text <> e.response) AS wrong_responses,
      (SELECT count(*)::int FROM public.history WHERE became = 'IN_DOUBT') AS doubts,
      (SELECT count(*)::int FROM oracle.audit WHERE action = 'resolve') AS audited,
      (SELECT count(*)::int FROM oracle.attempts WHERE status = 'RUNNING') AS open_attempts`);
  expect(row).toMatchObject({
    succeeded: types.length * JOBS,
    confirmed: types.length * JOBS * kinds.length,
    wrong_responses: 0,
    audited: resolved.all,
    open_attempts: 0,
  });
  const died = readdirSync(deaths, { recursive: true }).length - types.length;
  expect(died).toBeGreaterThan(2 * JOBS);
  // The others were children of workers: Python's, and those in which a job runs that has crashed before.
  expect(kills).toBeGreaterThan(JOBS / 3);
  expect(resolved.byCommand).toBeGreaterThan(0);
  console.log(
    `${died} deaths, ${kills} of them workers, ${received.length} calls for ${bodies.size} effects, ${row?.doubts} doubts, ${resolved.all} resolved by a person`,
  );
});
