import { defineJob } from "oracle-worker";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { JobEvent } from "../dist/http/client.js";
import { useServer } from "./support/http.js";
import { expireLease } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const server = useServer(db);

/** Handlers stop where a test wants them to, and go on when it says so. */
const gates = new Map<string, () => void>();
const gate = (name: string) => new Promise<void>((resolve) => gates.set(name, resolve));
async function open(name: string): Promise<void> {
  const release = await until(`gate ${name}`, async () => gates.get(name));
  gates.delete(name);
  release();
}

const story = defineJob({
  type: "story",
  input: z.object({ lines: z.number(), gates: z.array(z.string()) }),
  output: z.object({ attempt: z.number() }),
  async run({ input, job, log, progress }) {
    for (const name of input.gates) {
      for (let line = 1; line <= input.lines; line++) log.info(`${name} ${line}`);
      progress(0.5, `at ${name}`);
      await gate(`${name}/${job.attemptNo}`);
    }
    return { attempt: job.attemptNo };
  },
});

/** Reads until an event of that name, or to the end. */
async function read(
  events: AsyncIterable<JobEvent>,
  last?: (event: JobEvent) => boolean,
): Promise<JobEvent[]> {
  const seen: JobEvent[] = [];
  for await (const event of events) {
    seen.push(event);
    if (last?.(event)) break;
  }
  return seen;
}

const names = (events: JobEvent[]) => events.map(({ event }) => event);
const logs = (events: JobEvent[]) => events.flatMap((one) => (one.event === "log" ? [one.data.message] : []));
const isLog = (message: string) => (one: JobEvent) => one.event === "log" && one.data.message === message;

describe("a job's events", () => {
  it("tell its whole life: states, attempts, progress, log, result, end", async () => {
    await db.worker({ jobs: [story], queues: ["life"] });
    const api = await server.client("viewer");
    const job = await db.oracle.enqueue(story, { lines: 2, gates: ["life-a"] }, { queue: "life" });
    const reading = read(api.followJob(job.id));
    await open("life-a/1");
    const events = await reading;
    expect(logs(events)).toEqual(["life-a 1", "life-a 2"]);
    expect(events.filter(({ event }) => event === "progress").at(-1)?.data).toMatchObject({
      attempt_no: 1,
      fraction: 0.5,
      message: "at life-a",
    });
    expect(events.findLast(({ event }) => event === "state")?.data).toMatchObject({ state: "SUCCEEDED" });
    expect(events.findLast(({ event }) => event === "attempt")?.data).toMatchObject({ status: "SUCCEEDED" });
    expect(events.slice(-2)).toMatchObject([
      { event: "result", data: { result: { attempt: 1 } } },
      { event: "end", data: { state: "SUCCEEDED" } },
    ]);
    expect(new Set(events.map(({ id }) => id)).size).toBeGreaterThan(3);
  });

  it("resume behind the last one seen, without telling anything twice", async () => {
    await db.worker({ jobs: [story], queues: ["resume"] });
    const api = await server.client("viewer");
    const job = await db.oracle.enqueue(
      story,
      { lines: 3, gates: ["resume-a", "resume-b"] },
      { queue: "resume" },
    );
    const first = await read(api.followJob(job.id), isLog("resume-a 2"));
    await open("resume-a/1");
    await open("resume-b/1");
    await job.result();
    const lastEventId = first.at(-1)?.id as string;
    const rest = await read(api.followJob(job.id, { lastEventId }));
    expect(logs([...first, ...rest])).toEqual([
      "resume-a 1",
      "resume-a 2",
      "resume-a 3",
      "resume-b 1",
      "resume-b 2",
      "resume-b 3",
    ]);
    expect(names(rest)).not.toContain("reset");
    expect(names(rest).at(-1)).toBe("end");

    // Whoever has seen the end is told that nothing more will come.
    const token = await server.token("viewer");
    const again = await server.fetch(`/jobs/${job.id}/events`, {
      token,
      headers: { "last-event-id": rest.at(-1)?.id as string },
    });
    expect(again.status).toBe(204);
  });

  it("begin anew with `reset` when another attempt takes over", async () => {
    const worker = await db.worker({ jobs: [story], queues: ["reset"] });
    const api = await server.client("viewer");
    const job = await db.oracle.enqueue(story, { lines: 1, gates: ["reset-a"] }, { queue: "reset" });
    let followed = false;
    const reading = read(api.followJob(job.id), (event) => {
      followed ||= isLog("reset-a 1")(event);
      return event.event === "end";
    });
    await until("the follower to see the first attempt's log", async () => followed);
    await expireLease(db, job.id);
    await open("reset-a/2");
    const events = await reading;
    const at = names(events).indexOf("reset");
    expect(events[at]?.data).toEqual({ attempt_no: 2 });
    expect(logs(events.slice(0, at))).toEqual(["reset-a 1"]);
    expect(logs(events.slice(at))).toEqual(["reset-a 1"]);
    expect(events.at(-2)).toMatchObject({ event: "result", data: { result: { attempt: 2 } } });
    await open("reset-a/1");
    await worker.stop();
  });

  it("send a log that is longer than what is kept for all, page by page", async () => {
    await db.worker({ jobs: [story], queues: ["long"] });
    const api = await server.client("viewer");
    const job = await db.oracle.enqueue(story, { lines: 900, gates: ["long-a"] }, { queue: "long" });
    await open("long-a/1");
    await job.result();
    const events = await read(api.followJob(job.id));
    expect(logs(events)).toEqual(Array.from({ length: 900 }, (_, line) => `long-a ${line + 1}`));
  });

  it("come to a hundred followers from one look", async () => {
    await db.worker({ jobs: [story], queues: ["many"] });
    const api = await server.client("viewer");
    const job = await db.oracle.enqueue(story, { lines: 1, gates: ["many-a"] }, { queue: "many" });
    let begun = 0;
    const reading = Array.from({ length: 100 }, () =>
      read(api.followJob(job.id), (event) => {
        if (isLog("many-a 1")(event)) begun++;
        return event.event === "end";
      }),
    );
    await until("a hundred followers", async () => begun === 100);
    // The server's statistics come a second late, so what is counted is a stretch of three.
    const looks = async () => {
      const [row] = await db.sql(
        "SELECT idx_scan::int AS n FROM pg_stat_user_tables WHERE relname = 'attempt_logs'",
      );
      return row?.n as number;
    };
    const before = await until("a quiet moment", async () => {
      const seen = await looks();
      await new Promise((resolve) => setTimeout(resolve, 1500));
      return (await looks()) - seen < 100 && looks();
    });
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect((await looks()) - before).toBeLessThan(30);
    await open("many-a/1");
    for (const events of await Promise.all(reading)) expect(names(events).at(-1)).toBe("end");
  });

  it("are another tenant's business: the job is not there", async () => {
    const job = await db.oracle.enqueue("nobody", {}, { tenant: "a" });
    const api = await server.client("viewer", "b");
    await expect(read(api.followJob(job.id))).rejects.toMatchObject({ status: 404, code: "JOB_NOT_FOUND" });
  });

  it("outlive a database that goes away", async () => {
    await db.worker({ jobs: [story], queues: ["restart"] });
    const api = await server.client("viewer");
    const job = await db.oracle.enqueue(story, { lines: 1, gates: ["restart-a"] }, { queue: "restart" });
    const events = api.followJob(job.id);
    const seen: JobEvent[] = [];
    const next = async () => {
      const { value } = await events.next();
      seen.push(value as JobEvent);
      return value as JobEvent;
    };
    while (!isLog("restart-a 1")(await next()));
    // Every connection to this database is cut, as a restart would.
    await db.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    await open("restart-a/1");
    while ((await next()).event !== "end");
    expect(logs(seen)).toEqual(["restart-a 1"]);
    expect(seen.at(-2)).toMatchObject({ event: "result" });
  });
});
