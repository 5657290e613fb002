import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Run } from "../run.ts";
import { stopAtEnd } from "../servers/stops.ts";
import { endProcess, sleep } from "../servers/system.ts";
import { fill } from "./draining.ts";

const BENCH = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const CLI = join(BENCH, "..", "dist", "cli", "main.js");
const HANDLERS = join(BENCH, "handlers", "sleeper.mjs");
const GIVE_UP_MS = 60_000;

/** Seconds from SIGKILL of a worker process under `oracle-worker work` until its job runs in the next one. */
export async function superviseAndKill(run: Run): Promise<number> {
  const place = await run.freshPlace();
  await fill(run, place, { jobs: 1 });
  const folder = mkdtempSync(join(tmpdir(), "oracle-bench-recovery-"));
  const notes = join(folder, "notes");
  writeFileSync(notes, "");
  const supervisor = spawn(process.execPath, [CLI, "work", "--handlers", HANDLERS], {
    env: { ...process.env, DATABASE_URL: place.postgresUrl, BENCH_NOTES: notes },
    stdio: "ignore",
  });
  const forget = stopAtEnd("the supervisor", () => endProcess(supervisor, "SIGKILL", 5000));
  try {
    const [doomed] = await pids(notes, 1);
    process.kill(doomed as number, "SIGKILL");
    const began = performance.now();
    await pids(notes, 2);
    return (performance.now() - began) / 1000;
  } finally {
    // Its first signal waits for the job, its second does not; sent together they would be one.
    supervisor.kill("SIGTERM");
    await sleep(200);
    await endProcess(supervisor, "SIGTERM", 10_000);
    forget();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function pids(notes: string, count: number): Promise<number[]> {
  for (const end = performance.now() + GIVE_UP_MS; performance.now() < end; await sleep(1)) {
    const found = readFileSync(notes, "utf8").split("\n").filter(Boolean).map(Number);
    if (found.length >= count) return found;
  }
  throw new Error(`a supervised job was not started ${count} times in ${GIVE_UP_MS / 1000} s`);
}
