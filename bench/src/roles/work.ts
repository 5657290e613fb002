import { sleep } from "../servers/system.ts";
import { summarize, wallClock } from "../stats.ts";
import type { Contestant, Handler, Place, WorkerOptions } from "../types.ts";
import type { Io, RoleParams } from "./index.ts";
import { blobOf, openQueue } from "./queue.ts";

/** How often the driver hears of progress; often enough to end a drain on time, too seldom to cost anything. */
const REPORT_MS = 10;
/** How often it hears of latencies, for what runs for minutes. */
const LATENCY_MS = 10_000;

/** A worker process: ready → (go) → progress … → (finish) → drained → (stop) → stopped. */
export async function workRole(
  contestant: Contestant,
  place: Place,
  params: RoleParams["work"],
  io: Io,
): Promise<void> {
  const session = await openQueue(contestant, place);
  const latencies: number[] = [];
  const counts = { started: 0, done: 0 };
  const handler = makeHandler(params, counts, latencies);
  const options: WorkerOptions = { mode: params.mode, payloadBytes: params.blobBytes ?? 0 };
  if (params.concurrency !== undefined) options.concurrency = params.concurrency;

  io.send("ready", null);
  await io.receive("go");
  const worker = await session.startWorker(handler, options);
  const report = reportProgress(counts, io);
  const latencyReport = reportLatency(latencies, io);
  const stop = io.receive("stop");
  const finish = io.receive("finish");
  const how = await Promise.race([finish.then(() => "finish"), stop.then(() => "stop")]);
  if (how === "finish") {
    await worker.drained();
    io.send("drained", null);
    await stop;
  }
  clearInterval(report);
  clearInterval(latencyReport);
  await worker.stop();
  io.send("progress", { ...counts });
  io.send("stopped", { finished: await session.finished(), latency: summarize(latencies) });
  await session.close();
}

function makeHandler(
  params: RoleParams["work"],
  counts: { started: number; done: number },
  latencies: number[],
): Handler {
  const { blobBytes = 0, sleepMs = 0 } = params;
  // One padding text for all results: making a new one per job would measure the generator.
  const padding = blobBytes > 0 ? { blob: blobOf(blobBytes, 7) } : {};
  return (input) => {
    counts.started += 1;
    if (input.at !== undefined) latencies.push(wallClock() - input.at);
    const output = { ok: true as const, n: input.n, ...padding };
    if (sleepMs === 0) {
      counts.done += 1;
      return output;
    }
    return sleep(sleepMs).then(() => {
      counts.done += 1;
      return output;
    });
  };
}

function reportProgress(counts: { started: number; done: number }, io: Io): NodeJS.Timeout {
  let told = -1;
  return setInterval(() => {
    if (told === counts.started + counts.done) return;
    told = counts.started + counts.done;
    io.send("progress", { ...counts });
  }, REPORT_MS);
}

function reportLatency(latencies: number[], io: Io): NodeJS.Timeout {
  let told = 0;
  return setInterval(() => {
    if (latencies.length === told) return;
    io.send("latency", summarize(latencies.slice(told)));
    told = latencies.length;
  }, LATENCY_MS);
}
