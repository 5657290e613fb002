import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { Database, type Statement } from "../dist/store/database.js";
import { Claimer } from "../dist/worker/claimer.js";
import { echo } from "./support/jobs.js";
import { workerDatabase } from "./support/leases.js";
import { useTestDatabase } from "./support/oracle.js";

// What becomes of news: a job on an idle queue costs one statement, and no claim waits for a look.

const db = useTestDatabase();

/** The real database, which notes what it is asked; its looks' answers can be as late as under an old snapshot. */
class NotingDatabase extends Database {
  asked: string[] = [];
  lookMs = 0;

  override async query<Row>(sql: Statement<Row>, values: unknown[]): Promise<Row[]> {
    this.asked.push(sql.name);
    const rows = await super.query(sql, values);
    if (sql.name === "discover") await sleep(this.lookMs);
    return rows;
  }
}

const opened: Database[] = [];
let store: NotingDatabase;
let queue: string;
let claimer: Claimer;
beforeEach(async (test) => {
  store = new NotingDatabase(workerDatabase(db).options);
  opened.push(store);
  queue = `news-${test.task.id}`;
  claimer = new Claimer(store, { workerId: "w", queues: [queue], leaseSeconds: 60, versions: {} });
});
afterAll(() => Promise.all(opened.map((each) => each.close())));

async function claim(): Promise<string[]> {
  store.asked = [];
  return (await claimer.claim(10)).leases.map(({ jobId }) => jobId);
}

async function enqueue(tenant = "default", priority = 0): Promise<string> {
  const job = await db.oracle.enqueue("any", {}, { queue, tenant, priority });
  claimer.nudge();
  return job.id;
}

/** Nothing is ready, and this is known. */
async function runDry(): Promise<void> {
  while ((await claimer.take(10)).leases.length > 0);
}

describe("a job on a queue that ran dry", () => {
  it("is claimed by one statement, from where the last one was", async () => {
    await enqueue();
    await runDry();
    expect(await claim()).toEqual([]);
    expect(claimer.restBeforeLook).toBeUndefined();
    expect(store.asked).toEqual([]);
    const job = await enqueue();
    expect(await claim()).toEqual([job]);
    expect(store.asked).toEqual(["claim"]);
  });

  it("is found by a look when it is another tenant's, or comes before the last one", async () => {
    await enqueue();
    await runDry();
    for (const news of [() => enqueue("news-other"), () => enqueue("news-other", 5)]) {
      const job = await news();
      expect(await claim()).toEqual([]);
      // Sooner than after news that was found.
      expect(claimer.restBeforeLook).toBe(1);
      await claimer.look(10);
      expect(await claim()).toEqual([job]);
      expect(claimer.restBeforeLook).toBe(5);
    }
  });
});

describe("a look whose answer is late", () => {
  it("does not keep the news of those it did not see from being claimed", async () => {
    await enqueue();
    await runDry();
    const other = await enqueue("late-other");
    await claim();
    store.lookMs = 200;
    const look = claimer.look(10);
    await sleep(100);
    const during = await enqueue();
    expect(await claim()).toEqual([during]);
    await look;
    expect(await claim()).toEqual([other]);
    // It is still known, and whether there is more must be looked up again.
    const after = await enqueue();
    expect(await claim()).toEqual([after]);
    expect(store.asked).toEqual(["claim"]);
    expect(claimer.restBeforeLook).toBe(5);
  });

  it("is not undone by a claim that began before it", async () => {
    await enqueue();
    await runDry();
    await enqueue();
    const urgent = await enqueue("default", 5);
    store.lookMs = 50;
    const look = claimer.look(10);
    const locker = new pg.Client(db.url);
    await locker.connect();
    await locker.query("BEGIN; LOCK TABLE oracle.claims IN EXCLUSIVE MODE");
    const claimed = claimer.claim(10);
    await look;
    await locker.query("COMMIT");
    await locker.end();
    expect((await claimed).leases).toHaveLength(1);
    expect(await claim()).toEqual([urgent]);
  });
});

describe("a worker whose look is held up", () => {
  it("goes on with the jobs of those it knows, and is not drained before the look is over", async () => {
    const worker = await db.worker({ jobs: [echo], queues: [queue] });
    await (await db.oracle.enqueue(echo, { n: 1 }, { queue })).result();
    await worker.drained();
    const locker = new pg.Client(db.url);
    await locker.connect();
    // Of the tables that a look reads, one that claims of tenants without limits leave alone.
    await locker.query("BEGIN; LOCK TABLE oracle.slots IN ACCESS EXCLUSIVE MODE");
    const other = await db.oracle.enqueue(echo, { n: 2 }, { queue, tenant: "held-up" });
    let drained = false;
    void worker.drained().then(() => {
      drained = true;
    });
    await sleep(200);
    for (let n = 3; n < 6; n++) {
      const job = await db.oracle.enqueue(echo, { n }, { queue });
      expect(await job.result({ timeoutSeconds: 5 })).toEqual({ n });
    }
    expect((await db.oracle.get(other.id))?.state).toBe("PENDING");
    expect(drained).toBe(false);
    await locker.query("COMMIT");
    await locker.end();
    expect(await other.result()).toEqual({ n: 2 });
    await worker.drained();
  });
});
