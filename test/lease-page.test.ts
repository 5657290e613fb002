import { once } from "node:events";
import { Worker as Thread } from "node:worker_threads";
import { expect, test } from "vitest";
import { LeasePage } from "../dist/worker/lease-page.js";

const SLOTS = 4;
const TURNS = 400_000;

// Reads all the time what the loop below writes, and counts what is of two leases at once.
const reader = `
  const { parentPort, workerData } = require("node:worker_threads");
  import(workerData.module).then(({ LeasePage }) => {
    const page = new LeasePage(workerData.memory);
    const done = new Int32Array(workerData.done);
    let whole = 0, mixed = 0;
    parentPort.postMessage("reading");
    while (Atomics.load(done, 0) === 0) {
      for (let slot = 0; slot < ${SLOTS}; slot++) {
        const lease = page.read(slot);
        if (!lease) continue;
        const one = lease.jobId === lease.attemptId && Number(lease.jobId.slice(-12)) === lease.takenAt;
        if (one) whole++;
        else mixed++;
      }
    }
    parentPort.postMessage({ whole, mixed });
  });
`;

test("a thread that reads while leases come and go never sees halves of two", async () => {
  const page = new LeasePage();
  const done = new Int32Array(new SharedArrayBuffer(4));
  const module = new URL("../dist/worker/lease-page.js", import.meta.url).href;
  const thread = new Thread(reader, {
    eval: true,
    workerData: { module, memory: page.memory, done: done.buffer },
  });
  await once(thread, "message");
  for (let turn = 1; turn <= TURNS; turn++) {
    const id = `00000000-0000-0000-0000-${String(turn).padStart(12, "0")}`;
    const slot = turn % SLOTS;
    page.take(slot, id, id, turn);
    page.drop(slot);
  }
  Atomics.store(done, 0, 1);
  const [seen] = (await once(thread, "message")) as [{ whole: number; mixed: number }];
  expect(seen.mixed).toBe(0);
  expect(seen.whole).toBeGreaterThan(100);
});
