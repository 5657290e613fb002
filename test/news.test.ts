import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { Database, type Statement } from "../dist/store/database.js";
import { Claimer } from "../dist/worker/claimer.js";
import { workerDatabase } from "./support/leases.js";
import { useTestDatabase } from "./support/oracle.js";

// What a claimer does about news: a job on an idle queue costs one statement, and slow looks do not hold others up.

const db = useTestDatabase();

/** The real database, which notes what it is asked; its looks can be made as slow as under an old snapshot. */
class NotingDatabase extends Database {
  asked: string[] = [];
  lookMs = 0;

  override async query<Row>(sql: Statement<Row>, values: unknown[]): Promise<Row[]> {
    this.asked.push(sql.name);
    if (sql.name === "discover") await sleep(this.lookMs);
    return super.query(sql, values);
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

async function take(): Promise<string[]> {
  store.asked = [];
  return (await claimer.take(10)).leases.map(({ jobId }) => jobId);
}

/** A little longer: a timer may come a fraction of a millisecond early. */
const rested = () => sleep(claimer.restMs + 5);

async function enqueue(tenant = "default"): Promise<string> {
  const job = await db.oracle.enqueue("any", {}, { queue, tenant });
  claimer.nudge();
  return job.id;
}

describe("a job on a queue that ran dry", () => {
  it("is claimed by one statement, from where the last one was", async () => {
    const first = await enqueue();
    expect(await take()).toEqual([first]);
    await rested();
    expect(await take()).toEqual([]);
    const second = await enqueue();
    expect(await take()).toEqual([second]);
    expect(store.asked).toEqual(["claim"]);
  });

  it("is found by a look when it is another tenant's, or comes before the last one", async () => {
    await enqueue();
    await take();
    const other = await enqueue("news-other");
    await sleep(50);
    expect(await take()).toEqual([other]);
    expect(store.asked).toContain("discover");
    const job = await db.oracle.enqueue("any", {}, { queue, priority: 5 });
    claimer.nudge();
    await sleep(50);
    expect(await take()).toEqual([job.id]);
  });
});

describe("where looks are slow", () => {
  it("news of a tenant nobody knows waits for half of the time at most", async () => {
    store.lookMs = 200;
    for (let looks = 0; looks < 10; looks++) {
      await enqueue(`new-${looks}`);
      await rested();
      await take();
    }
    await enqueue("new-last");
    while ((await take()).length === 0) {
      expect(claimer.restMs).toBeLessThan(4 * store.lookMs);
      await rested();
    }
  });

  it("they rest between, and jobs behind the remembered head do not wait for them", async () => {
    store.lookMs = 300;
    // One slow look says little; several do.
    for (let looks = 0; looks < 10; looks++) {
      await enqueue(`slow-${looks}`);
      await rested();
      await take();
      await rested();
    }
    await enqueue();
    while ((await take()).length === 0) await rested();
    const second = await enqueue();
    expect(await take()).toEqual([second]);
    expect(store.asked).toEqual(["claim"]);
    // No news: nothing is asked, and the look is owed.
    expect(await take()).toEqual([]);
    expect(store.asked).toEqual([]);
    expect(claimer.restMs).toBeGreaterThan(0);
    await rested();
    expect(await take()).toEqual([]);
    expect(store.asked).toEqual(["discover"]);
    expect(claimer.restMs).toBe(0);
  });
});
