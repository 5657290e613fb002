import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { until, useTestDatabase } from "./support/oracle.js";
import { handlers, runCli } from "./support/process.js";

// Real processes that get real signals.

const db = useTestDatabase();
let file: string;
let queueNumber = 0;
beforeAll(async () => {
  file = join(mkdtempSync(join(tmpdir(), "oracle-worker-")), "runs");
});

function work(queue: string, ...args: string[]) {
  const env = { DATABASE_URL: db.url, LEASE_SECONDS: "30", POLL_INTERVAL: "100ms", SHUTDOWN_GRACE: "2s" };
  return runCli(["work", "--handlers", handlers, "--queues", queue, ...args], env);
}
const newQueue = () => `processes-${queueNumber++}`;
const attemptsOf = async (id: string) =>
  (await db.oracle.attempts(id)).map(({ status, cause }) => (cause ? `${status} ${cause}` : status));
const started = (id: string, times: number) =>
  until(`job ${id} to start ${times} times`, async () => {
    try {
      return (
        readFileSync(file, "utf8")
          .split("\n")
          .filter((line) => line.startsWith(id)).length >= times
      );
    } catch {
      return false;
    }
  });

describe("a worker killed in the middle of a job", () => {
  it("leaves one result and two attempts with their causes, long before the lease ends", async () => {
    const queue = newQueue();
    const worker = work(queue);
    const job = await db.oracle.enqueue("logged", { file, ms: 1000 }, { queue });
    await started(job.id, 1);
    process.kill(worker.children()[0] as number, "SIGKILL");
    await job.result({ timeoutSeconds: 15 });
    expect(await attemptsOf(job.id)).toEqual(["LEASE_EXPIRED WORKER_CRASHED", "SUCCEEDED"]);
    expect(await db.sql("SELECT count(*)::int AS n FROM oracle.results WHERE job_id = $1", [job.id])).toEqual(
      [{ n: 1 }],
    );
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });

  it("without a supervisor left, another worker takes over when the lease ends", async () => {
    const queue = newQueue();
    const env = { DATABASE_URL: db.url, LEASE_SECONDS: "1.5", POLL_INTERVAL: "100ms" };
    const first = runCli(["work", "--handlers", handlers, "--queues", queue], env);
    const job = await db.oracle.enqueue("logged", { file, ms: 800 }, { queue });
    await started(job.id, 1);
    const [child] = first.children();
    first.process.kill("SIGKILL");
    process.kill(child as number, "SIGKILL");
    runCli(["work", "--handlers", handlers, "--queues", queue], env);
    await job.result({ timeoutSeconds: 15 });
    expect(await attemptsOf(job.id)).toEqual(["LEASE_EXPIRED LEASE_EXPIRED", "SUCCEEDED"]);
  });

  it("a process that lost its supervisor finishes its job and ends", async () => {
    const queue = newQueue();
    const worker = work(queue);
    const job = await db.oracle.enqueue("logged", { file, ms: 700 }, { queue });
    await started(job.id, 1);
    const [child] = worker.children();
    worker.process.kill("SIGKILL");
    await job.result({ timeoutSeconds: 10 });
    expect(await attemptsOf(job.id)).toEqual(["SUCCEEDED"]);
    await until("the orphan to end", async () => {
      try {
        process.kill(child as number, 0);
        return false;
      } catch {
        return true;
      }
    });
  });

  it("a poison job runs out of attempts and takes nobody else's with it", async () => {
    const queue = newQueue();
    const bystander = await db.oracle.enqueue("logged", { file, ms: 50 }, { queue, runAfter: 1 });
    const job = await db.oracle.enqueue("poison", {}, { queue, maxAttempts: 3 });
    const worker = work(queue, "--concurrency", "1");
    expect(await db.oracle.wait(job.id, { timeoutSeconds: 25 })).toMatchObject({
      state: "FAILED_TERMINAL",
      attemptCount: 3,
      error: { code: "HANDLER_EXITED" },
    });
    // It took a worker with it once; from then on it had a process to itself.
    expect(await attemptsOf(job.id)).toEqual([
      "LEASE_EXPIRED WORKER_CRASHED",
      "FAILED HANDLER_EXITED",
      "FAILED HANDLER_EXITED",
    ]);
    await bystander.result({ timeoutSeconds: 20 });
    expect((await attemptsOf(bystander.id)).at(-1)).toBe("SUCCEEDED");
    worker.process.kill("SIGTERM");
    await worker.ended;
  });

  it("a job that crashed its process next runs in one of its own, with the same environment", async () => {
    const queue = newQueue();
    const env = { DATABASE_URL: db.url, LEASE_SECONDS: "30", POLL_INTERVAL: "100ms", CANARY: "seen" };
    const worker = runCli(["work", "--handlers", handlers, "--queues", queue], env);
    const job = await db.oracle.enqueue("poison-once", { file }, { queue });
    const { pid, canary } = (await job.result({ timeoutSeconds: 25 })) as { pid: number; canary: string };
    expect(canary).toBe("seen");
    expect(worker.children()).not.toContain(pid);
    expect(await attemptsOf(job.id)).toEqual(["LEASE_EXPIRED WORKER_CRASHED", "SUCCEEDED"]);
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });
});

describe("an inline handler that leaves an error uncaught", () => {
  async function beside(how: string) {
    const queue = newQueue();
    const worker = work(queue);
    const bystander = await db.oracle.enqueue("logged", { file, ms: 3000 }, { queue, maxAttempts: 1 });
    await started(bystander.id, 1);
    const stray = await db.oracle.enqueue("stray", { how }, { queue, maxAttempts: 1 });
    const ended = await db.oracle.wait(stray.id, { timeoutSeconds: 30 });
    const { pid } = (await bystander.result({ timeoutSeconds: 30 })) as { pid: number };
    const attempts = { stray: await attemptsOf(stray.id), bystander: await attemptsOf(bystander.id) };
    const lives = worker.children().includes(pid);
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
    return { ended, attempts, lives, output: worker.output() };
  }

  it.each(["rejects late", "throws late"])("and %s disturbs nobody", async (how) => {
    const { ended, attempts, lives, output } = await beside(how);
    expect(ended?.state).toBe("SUCCEEDED");
    expect(attempts.bystander).toEqual(["SUCCEEDED"]);
    expect(lives).toBe(true);
    expect(output).toMatch(/uncaught after its end/);
  });

  it("and throws while it runs fails its own attempt alone", async () => {
    const { ended, attempts, lives } = await beside("throws while it runs");
    expect(ended).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "HANDLER_EXITED", message: "The handler left an error uncaught: uncaught" },
    });
    expect(attempts.bystander).toEqual(["SUCCEEDED"]);
    expect(lives).toBe(true);
  });

  it("and lets nobody throw costs its process, but no job an attempt", async () => {
    const { ended, attempts } = await beside("lets nobody throw");
    expect(ended?.state).toBe("SUCCEEDED");
    for (const each of Object.values(attempts))
      expect(each).toEqual(["RELEASED PROCESS_REPLACED", "SUCCEEDED"]);
  });
});

describe("signals", () => {
  it("SIGTERM: what runs finishes, what waits goes back, exit 0", async () => {
    const queue = newQueue();
    const worker = work(queue, "--concurrency", "2");
    const jobs = await db.oracle.enqueueMany(
      "logged",
      Array.from({ length: 10 }, () => ({ file, ms: 400 })),
      { queue },
    );
    await until(
      "two to run",
      async () => (await db.oracle.list({ queue, state: "RUNNING" })).items.length === 2,
    );
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
    const states = (await db.oracle.list({ queue })).items.map(({ state }) => state);
    expect(states).toHaveLength(jobs.length);
    expect(new Set(states)).toEqual(new Set(["SUCCEEDED", "PENDING"]));
    expect(worker.children()).toEqual([]);
  });

  it("a handler that ignores its signal is killed before its job is handed back, at no cost", async () => {
    const queue = newQueue();
    const worker = work(queue);
    const job = await db.oracle.enqueue("stubborn", { ms: 60_000 }, { queue });
    await until("it to run", async () => (await job.state()) === "RUNNING");
    worker.process.kill("SIGTERM");
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(await db.oracle.get(job.id)).toMatchObject({ state: "PENDING", interruptions: 1 });
    expect(await attemptsOf(job.id)).toEqual(["RELEASED SHUTDOWN"]);
  });
});

describe("work", () => {
  it("--drain with several processes empties the queue and exits 0", async () => {
    const queue = newQueue();
    await db.oracle.enqueueMany(
      "quick",
      Array.from({ length: 2000 }, (_, n) => ({ n })),
      { queue },
    );
    const worker = work(queue, "--drain", "--processes", "2", "--concurrency", "50");
    expect(await worker.ended).toBe(0);
    const rows = await db.sql(
      "SELECT state::text, count(*)::int AS n FROM oracle.jobs WHERE queue_name = $1 GROUP BY 1",
      [queue],
    );
    expect(rows).toEqual([{ state: "SUCCEEDED", n: 2000 }]);
  });

  it.skipIf(!existsSync("/proc/self/cmdline"))(
    "shows nobody its orders, its database or a payload in a command line (read from /proc)",
    async () => {
      const queue = newQueue();
      const worker = work(queue);
      const job = await db.oracle.enqueue("logged", { file, ms: 60_000 }, { queue });
      await started(job.id, 1);
      const commandLine = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, "utf8");
      const [child, ...others] = worker.children();
      const shown = commandLine(child as number);
      expect(others).toEqual([]);
      expect(shown).toContain("work-child");
      // Its orders: the handlers, the queues, its id. The supervisor's own command line holds what it was given.
      for (const word of [handlers, queue, "workerId"]) expect(shown).not.toContain(word);
      const { password, host, pathname } = new URL(db.url);
      for (const line of [shown, commandLine(worker.process.pid as number)]) {
        for (const secret of [password, host, pathname.slice(1), file]) {
          if (secret) expect(line).not.toContain(secret);
        }
      }
      worker.process.kill("SIGTERM");
      worker.process.kill("SIGTERM");
      expect(await worker.ended).toBe(0);
    },
  );

  it.each([
    [["--handlers", "/nowhere/at/all.ts"], 2, /HANDLERS_INVALID.*does not exist/],
    [["--concurrency", "none"], 2, /INVALID_SETTING.*CONCURRENCY/],
    [["--processes", "0"], 2, /--processes/],
  ])("%j is refused", async (args, code, message) => {
    const worker = runCli(["work", ...args], { DATABASE_URL: db.url });
    expect(await worker.ended).toBe(code);
    expect(worker.output()).toMatch(message);
  });
});
