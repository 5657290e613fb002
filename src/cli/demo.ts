import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { createLogger } from "../observe/log.js";
import type { Oracle } from "../oracle.js";
import { withOracle } from "./open.js";
import { supervise } from "./supervise.js";

export function register(program: Command): void {
  const demo = program.command("demo").description("see for yourself");
  demo
    .command("crash")
    .description("kill a worker in the middle of a job and see one result all the same")
    .addHelpText("after", "\nExample:\n  oracle-worker demo crash\n")
    .action((_flags, command: Command) => crash(command));
}

async function crash(command: Command): Promise<void> {
  const { json } = command.optsWithGlobals<{ json?: boolean }>();
  // A queue of its own: no other worker takes part, and none is killed.
  const queue = `demo-${randomBytes(3).toString("hex")}`;
  await withOracle(
    command,
    { settings: { QUEUES: queue, LOG_LEVEL: "error" }, migrate: "embedded" },
    async (oracle) => {
      const say = json ? () => {} : (line: string) => void process.stdout.write(`${line}\n`);
      const supervisor = supervise({
        oracle,
        logger: createLogger("silent"),
        processes: 1,
        handlers: fileURLToPath(new URL("./demo-handlers.js", import.meta.url)),
      });
      const ended = supervisor.run();
      const job = await oracle.enqueue("demo_slow", { seconds: 2 }, { queue });
      say(`job ${job.id} enqueued`);
      await untilRunning(oracle, job.id);
      const [pid] = supervisor.pids();
      say(`attempt 1 is running in process ${pid}: kill -9 ${pid}`);
      process.kill(pid as number, "SIGKILL");
      const killedAt = performance.now();
      const result = await job.result({ timeoutSeconds: 60 });
      const seconds = Number(((performance.now() - killedAt) / 1000).toFixed(1));
      supervisor.stop();
      await ended;
      await report(oracle, job.id, { result, seconds, json: json ?? false });
    },
  );
}

async function untilRunning(oracle: Oracle, jobId: string): Promise<void> {
  while ((await oracle.get(jobId))?.state !== "RUNNING")
    await new Promise((resolve) => setTimeout(resolve, 50));
  // A moment later the handler is truly in the middle of its work.
  await new Promise((resolve) => setTimeout(resolve, 300));
}

async function report(
  oracle: Oracle,
  jobId: string,
  outcome: { result: unknown; seconds: number; json: boolean },
): Promise<void> {
  const attempts = await oracle.attempts(jobId);
  const rows = attempts.map(({ attemptNo, status, cause, workerId }) => ({
    attempt_no: attemptNo,
    status,
    cause,
    worker_id: workerId,
  }));
  const asExpected = attempts.length === 2 && attempts[1]?.status === "SUCCEEDED";
  if (outcome.json) {
    const { result, seconds } = outcome;
    process.stdout.write(
      `${JSON.stringify({ job_id: jobId, attempts: rows, result, recovered_in_seconds: seconds })}\n`,
    );
  } else {
    for (const row of rows) {
      process.stdout.write(`  attempt ${row.attempt_no}  ${row.status.padEnd(14)} ${row.cause ?? ""}\n`);
    }
    process.stdout.write(
      `one result, ${outcome.seconds} s after the kill: ${JSON.stringify(outcome.result)}\n`,
    );
  }
  if (!asExpected) process.exitCode = 1;
}
