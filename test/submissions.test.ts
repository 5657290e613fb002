import { connect } from "oracle-worker";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { useServer } from "./support/http.js";
import { echo } from "./support/jobs.js";
import { until, useTestDatabase } from "./support/oracle.js";

// Single submissions of many callers at the same time: they share statements, and nothing else.

const db = useTestDatabase();
const server = useServer(db);

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const outcomes = <T>(calls: Promise<T>[]) =>
  Promise.all(calls.map((call) => call.catch((error: Error & { code?: string }) => error.code)));
/** Jobs of a queue, and the transactions that stored them. */
const stored = async (queue: string) => {
  const [row] = await db.sql(
    `SELECT count(*)::int AS jobs, count(DISTINCT xmin::text)::int AS transactions
     FROM oracle.jobs WHERE queue_name = $1`,
    [queue],
  );
  return row as { jobs: number; transactions: number };
};
const openClient = async () => {
  const client = new pg.Client(db.url);
  await client.connect();
  return client;
};

describe("callers at the same time", () => {
  it("share few statements, and each gets its own job", async () => {
    const queue = "crowd";
    const handles = await Promise.all(numbers(300).map((n) => db.oracle.enqueue(echo, { n }, { queue })));
    expect(new Set(handles.map((handle) => handle.id)).size).toBe(300);
    expect(handles.every((handle) => handle.created)).toBe(true);
    for (const n of [0, 150, 299]) {
      expect((await db.oracle.get(handles[n]?.id as string))?.input).toEqual({ n });
    }
    const { jobs, transactions } = await stored(queue);
    expect(jobs).toBe(300);
    expect(transactions).toBeLessThan(10);
  });

  it("one that waits for its answer each time is stored each time", async () => {
    for (const n of numbers(5)) await db.oracle.enqueue(echo, { n }, { queue: "lone" });
    expect(await stored("lone")).toEqual({ jobs: 5, transactions: 5 });
  });

  it("what one submits in a row runs in that order, whatever the keys", async () => {
    const queue = "order";
    await Promise.all(
      numbers(100).map((n) =>
        db.oracle.enqueue(echo, { n }, n % 2 ? { queue } : { queue, key: `order-${100 - n}` }),
      ),
    );
    const rows = await db.sql(
      `SELECT (j.input_payload->>'n')::int AS n FROM oracle.ready_jobs r JOIN oracle.jobs j USING (job_id)
       WHERE r.queue_name = $1 ORDER BY r.rank, r.ready_at, r.job_id`,
      [queue],
    );
    expect(rows.map((row) => row.n)).toEqual(numbers(100));
  });

  it("a group is bounded by the size of its inputs", async () => {
    const queue = "large";
    const text = "x".repeat(1_000_000);
    await Promise.all(numbers(12).map((n) => db.oracle.enqueue("large", { n, text }, { queue })));
    const { jobs, transactions } = await stored(queue);
    expect(jobs).toBe(12);
    expect(transactions).toBeGreaterThanOrEqual(3);
  });
});

describe("what goes wrong for one", () => {
  it("a conflict of keys is told to the one who caused it", async () => {
    const queue = "conflict";
    const taken = await db.oracle.enqueue(echo, { n: -1 }, { queue, key: "taken" });
    const calls = numbers(20).map((n) => {
      const key = n === 7 || n === 8 ? "taken" : `free-${n}`;
      return db.oracle.enqueue(echo, { n: n === 8 ? -1 : n }, { queue, key });
    });
    const results = await outcomes(calls);
    expect(results[7]).toBe("IDEMPOTENCY_CONFLICT");
    expect(results[8]).toMatchObject({ id: taken.id, created: false, joined: "key" });
    expect(results.filter((one) => typeof one === "object" && one.created)).toHaveLength(18);
    expect((await stored(queue)).jobs).toBe(19);
  });

  it("the same key twice at once is one job, and with another input a conflict", async () => {
    const queue = "twice";
    const [first, second, third, fourth, fifth] = await outcomes([
      db.oracle.enqueue(echo, { n: 1 }, { queue, key: "twice" }),
      db.oracle.enqueue(echo, { n: 1 }, { queue, key: "twice" }),
      db.oracle.enqueue(echo, { n: 2 }, { queue, key: "twice" }),
      db.oracle.enqueue(echo, { n: 3 }, { queue, dedupe: "active" }),
      db.oracle.enqueue(echo, { n: 3 }, { queue, dedupe: "active" }),
    ]);
    expect(first).toMatchObject({ created: true });
    expect(second).toMatchObject({ id: (first as { id: string }).id, created: false, joined: "key" });
    expect(third).toBe("IDEMPOTENCY_CONFLICT");
    expect(fourth).toMatchObject({ created: true });
    expect(fifth).toMatchObject({ id: (fourth as { id: string }).id, created: false, joined: "active" });
    expect((await stored(queue)).jobs).toBe(2);
  });

  it("a tenant beyond its quota is refused, and gets what it has room for; its neighbours notice nothing", async () => {
    const queue = "quota";
    await db.oracle.setTenant("small", { maxWaiting: 3 });
    const calls = numbers(60).map((n) =>
      db.oracle.enqueue(echo, { n }, { queue, tenant: n % 2 ? "large" : "small" }),
    );
    const results = await outcomes(calls);
    const ofSmall = results.filter((_, n) => n % 2 === 0);
    // Those who are decided about at the same moment may together go a little beyond.
    expect(ofSmall.filter((one) => typeof one === "object").length).toBeGreaterThanOrEqual(3);
    expect(ofSmall).toContain("QUOTA_EXCEEDED");
    expect(ofSmall.every((one) => one === "QUOTA_EXCEEDED" || typeof one === "object")).toBe(true);
    expect(results.filter((one, n) => n % 2 && typeof one === "object")).toHaveLength(30);
    expect((await stored(queue)).jobs).toBe(results.filter((one) => typeof one === "object").length);
  });

  it("one that waits for another's open transaction lets the rest go on", async () => {
    const queue = "blocked";
    const client = await openClient();
    await client.query("BEGIN");
    const first = await db.oracle.enqueue(echo, { n: 0 }, { queue, key: "open", client });
    const [waiting, ...rest] = numbers(20).map((n) =>
      db.oracle.enqueue(echo, { n }, { queue, key: n === 0 ? "open" : `rest-${n}` }),
    );
    expect((await Promise.all(rest)).every((handle) => handle.created)).toBe(true);
    await client.query("COMMIT");
    await client.end();
    expect(await waiting).toMatchObject({ id: first.id, created: false, joined: "key" });
  });
});

describe("a connection that breaks", () => {
  it("is told to everybody in the group, and the next ones are stored", async () => {
    const queue = "killed";
    await db.sql(
      `CREATE FUNCTION slow_insert() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END';
       CREATE TRIGGER slow BEFORE INSERT ON oracle.jobs FOR EACH ROW WHEN (NEW.job_type = 'slow')
       EXECUTE FUNCTION slow_insert()`,
    );
    const calls = outcomes(
      numbers(10).map((n) => db.oracle.enqueue(n === 9 ? "slow" : "quick", { n }, { queue })),
    );
    const killed = await until("the statement", async () => {
      const rows = await db.sql(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event = 'PgSleep'`,
      );
      return rows.length;
    });
    expect(killed).toBe(1);
    expect(await calls).toEqual(numbers(10).map(() => "DATABASE_UNREACHABLE"));
    expect((await stored(queue)).jobs).toBe(0);
    await db.oracle.enqueue("quick", {}, { queue });
    expect((await stored(queue)).jobs).toBe(1);
  });
});

describe("close", () => {
  it("waits for what is under way and refuses what comes after", async () => {
    const oracle = await connect({ databaseUrl: db.url, maxConnections: 2 });
    const calls = numbers(700).map((n) => oracle.enqueue(echo, { n }, { queue: "closing" }));
    // Their inputs are checked in the background; they are in line when the first is stored.
    await calls[0];
    await oracle.close();
    expect(await outcomes(calls)).toSatisfy((all: unknown[]) => all.every((one) => typeof one === "object"));
    expect((await stored("closing")).jobs).toBe(700);
    await expect(oracle.enqueue(echo, { n: 1 })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });
});

describe("by way of the API", () => {
  it("those of one tenant share transactions, and each gets its own answer", async () => {
    const queue = "api";
    const post = async (tenant: string, n: number, key?: string) => {
      const response = await server.fetch("/jobs", {
        method: "POST",
        token: tokens[tenant] as string,
        headers: { "content-type": "application/json", ...(key ? { "idempotency-key": key } : {}) },
        body: JSON.stringify({ type: "echo", input: { n }, queue }),
      });
      return {
        status: response.status,
        body: (await response.json()) as { tenant_id?: string; job_id?: string },
      };
    };
    const tokens: Record<string, string> = {
      red: await server.token("operator", "red"),
      blue: await server.token("operator", "blue"),
    };
    const answers = await Promise.all(
      numbers(120).map((n) => post(n % 2 ? "red" : "blue", n, n < 4 ? "the-key" : undefined)),
    );
    // The key is each tenant's own: its second user has another input.
    const keyed = (tenant: number) => answers.slice(0, 4).filter((_, n) => n % 2 === tenant);
    for (const two of [keyed(0), keyed(1)])
      expect(two.map(({ status }) => status).sort()).toEqual([201, 409]);
    expect(answers.slice(4).every(({ status }) => status === 201)).toBe(true);
    expect(answers.slice(4).every(({ body }, n) => body.tenant_id === (n % 2 ? "red" : "blue"))).toBe(true);
    const { jobs, transactions } = await stored(queue);
    expect(jobs).toBe(118);
    expect(transactions).toBeLessThan(118);
    const [mixed] = await db.sql(
      `SELECT count(*)::int AS n FROM (
         SELECT FROM oracle.jobs WHERE queue_name = $1 GROUP BY xmin::text HAVING count(DISTINCT tenant_id) > 1) m`,
      [queue],
    );
    expect(mixed?.n).toBe(0);
  });
});
