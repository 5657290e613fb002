// Handlers that are functions, run in processes of their own.
import { spawnSync } from "node:child_process";
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob } from "oracle-worker";
import { z } from "zod";

const shape = { isolation: "process", input: z.any(), output: z.any() };

/** Speaks on every way out that a handler has. */
const speak = async ({ input, job, progress, log, artifact }) => {
  console.log("printed");
  process.stdout.write("written\n");
  writeSync(1, "past Node\n");
  spawnSync("echo", ["inherited"], { stdio: "inherit" });
  progress(0.5, "half");
  log.info("said", { n: input.n });
  return { kept: await artifact("note", { n: input.n }), attempt: job.attemptNo, pid: process.pid };
};
export const speaker = defineJob({ ...shape, type: "speaker", run: speak });
export const warmSpeaker = defineJob({ ...shape, type: "warm_speaker", warm: 1, run: speak });

/** Leaves something behind that breaks: at once, or later, or while it still runs. */
const leave = async ({ input, signal }) => {
  const { breakAfterMs, exitAfterMs, runMs = 0, n } = input;
  if (exitAfterMs) setTimeout(() => process.exit(0), exitAfterMs);
  if (breakAfterMs === 0) void Promise.reject(new Error(`left behind by ${n}`));
  else if (breakAfterMs)
    setTimeout(() => void Promise.reject(new Error(`left behind by ${n}`)), breakAfterMs);
  if (runMs > 0) await sleep(runMs, undefined, { signal });
  return { n, pid: process.pid };
};
export const leaver = defineJob({ ...shape, type: "leaver", run: leave });
export const warmLeaver = defineJob({ ...shape, type: "warm_leaver", warm: 1, run: leave });

export const strict = defineJob({
  type: "strict",
  isolation: "process",
  warm: 1,
  input: z.object({ how: z.string() }),
  output: z.looseObject({ fine: z.boolean() }),
  run({ input, snooze, job }) {
    if (input.how === "string") throw "just a string";
    if (input.how === "circular") {
      const error = { message: "round" };
      error.self = error;
      throw error;
    }
    if (input.how === "bigint") return { fine: true, n: 1n };
    if (input.how === "shape") return { fine: "very" };
    if (input.how === "loop") for (;;);
    if (input.how === "exit") process.exit(0);
    if (input.how === "snooze" && job.attemptNo === 1) snooze(0.01);
    return { fine: true };
  },
});

/** Asks for more than it may have, outside its heap. */
export const hoarder = defineJob({
  ...shape,
  type: "hoarder",
  memoryMb: 128,
  run: () => new ArrayBuffer(2 ** 32).byteLength,
});
