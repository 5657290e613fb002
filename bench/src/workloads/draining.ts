import type { Child } from "../children.ts";
import type { RoleParams } from "../roles/index.ts";
import type { Run } from "../run.ts";
import { sleep } from "../servers/system.ts";
import type { Contestant, Place } from "../types.ts";

export const notAQueue = (contestant: Contestant): string | undefined =>
  contestant.openQueue ? undefined : "";

/** Total over the workers of one counter. */
export function total(workers: Array<Child<"work">>, what: "started" | "done"): number {
  return workers.reduce((sum, worker) => sum + (worker.latest("progress")?.[what] ?? 0), 0);
}

const SAY_EVERY_MS = 30_000;

/** Enough for the slowest contestant, a tenth of a millisecond per job and ten minutes besides. */
export const patienceMs = (jobs: number): number => 600_000 + jobs / 10;

/** Waits until the workers together have reached the count; fails as soon as one of them fails. Says how far they are. */
export async function untilCount(
  run: Run,
  workers: Array<Child<"work">>,
  what: "started" | "done",
  count: number,
  timeoutMs = patienceMs(count),
): Promise<void> {
  const end = performance.now() + timeoutMs;
  let sayAt = performance.now() + SAY_EVERY_MS;
  while (total(workers, what) < count) {
    const now = performance.now();
    if (now > end)
      throw new Error(`${total(workers, what)} of ${count} jobs ${what} in ${timeoutMs / 1000} s`);
    if (now > sayAt) {
      run.say(`${total(workers, what)} of ${count} jobs ${what}`);
      sayAt = now + SAY_EVERY_MS;
    }
    for (const worker of workers) if (!worker.alive()) await worker.receive("drained", 1);
    await sleep(2);
  }
}

/** Starts worker processes and waits until each is loaded and connected, but not yet working. */
export async function readyWorkers(
  run: Run,
  place: Place,
  processes: number,
  params: RoleParams["work"],
  env: Record<string, string> = {},
): Promise<Array<Child<"work">>> {
  const workers = Array.from({ length: processes }, () => run.spawn("work", params, place, env));
  await Promise.all(workers.map((worker) => worker.receive("ready")));
  return workers;
}

/**
 * Seconds from letting the workers go until the store says that all jobs have finished, start of the workers
 * included. Fails when jobs ran twice or results are missing: a wrong drain has no speed.
 */
export async function timeDrain(
  run: Run,
  place: Place,
  jobs: number,
  processes: number,
  blobBytes = 0,
): Promise<number> {
  const workers = await readyWorkers(run, place, processes, { mode: "throughput", blobBytes });
  await run.settle(place);
  const began = performance.now();
  for (const worker of workers) worker.send("go");
  await untilCount(run, workers, "done", jobs);
  for (const worker of workers) worker.send("finish");
  await Promise.all(workers.map((worker) => worker.receive("drained")));
  const seconds = (performance.now() - began) / 1000;
  await stopAndCheck(workers, jobs);
  return seconds;
}

export async function stopAndCheck(workers: Array<Child<"work">>, jobs: number): Promise<void> {
  for (const worker of workers) worker.send("stop");
  const ends = await Promise.all(workers.map((worker) => worker.receive("stopped")));
  const handled = total(workers, "done");
  if (handled !== jobs) throw new Error(`${handled} handler runs for ${jobs} jobs`);
  for (const { finished } of ends) {
    if (finished !== null && finished !== jobs)
      throw new Error(`${finished} finished jobs in the store, not ${jobs}`);
  }
}

/** Fills a fresh place in bulk and returns how long the enqueueing itself took. */
export async function fill(
  run: Run,
  place: Place,
  params: Omit<RoleParams["fill"], "install">,
): Promise<number> {
  const filler = run.spawn("fill", { ...params, install: true }, place);
  return (await filler.receive("filled", patienceMs(params.jobs))).seconds;
}
