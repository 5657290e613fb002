// The job of the supervised recovery: notes which process runs it, then sleeps for longer than anybody waits.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob } from "../../dist/index.js";

const anything = { "~standard": { version: 1, vendor: "bench", validate: (value) => ({ value }) } };

export const job = defineJob({
  type: "bench",
  input: anything,
  output: anything,
  timeoutSeconds: 600,
  async run({ signal }) {
    appendFileSync(process.env.BENCH_NOTES, `${process.pid}\n`);
    await sleep(300_000, undefined, { signal });
    return { ok: true };
  },
});
