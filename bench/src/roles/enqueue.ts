import pg from "pg";
import type { Contestant, Place, QueueSession } from "../types.ts";
import type { Io, RoleParams } from "./index.ts";
import { inputs, openQueue } from "./queue.ts";

/** Connections of the caller; the same for everyone, and what 16 callers at once need. */
const CALLERS = 16;

/** All ways to enqueue, one after the other in one process, no worker running: jobs per second of each. */
export async function enqueueRole(
  contestant: Contestant,
  place: Place,
  params: RoleParams["enqueue"],
  io: Io,
): Promise<void> {
  const session = await openQueue(contestant, place);
  await session.install();
  // Not measured: the first statements of a process pay for connections, plans and the JIT.
  await session.enqueueMany(inputs(0, 1000));
  await concurrently(CALLERS, 200, (n) => session.enqueue({ n }));

  const rates: Record<string, number> = {};
  const bulk = inputs(0, params.bulk);
  rates.bulk = await rateOf(params.bulk, () => session.enqueueMany(bulk));
  await analyze(contestant, place);
  rates.single = await rateOf(params.single, async () => {
    for (let n = 0; n < params.single; n++) await session.enqueue({ n });
  });
  rates.single16 = await rateOf(params.single, () =>
    concurrently(CALLERS, params.single, (n) => session.enqueue({ n })),
  );
  let expected = 1200 + params.bulk + 2 * params.single;
  expected += await insideTransactions(session, place, params, rates);
  const found = await session.waiting();
  if (found !== expected)
    throw new Error(`${found} jobs in the store, not the ${expected} that were enqueued`);
  await session.close();
  io.send("rates", rates);
}

async function insideTransactions(
  session: QueueSession,
  place: Place,
  params: RoleParams["enqueue"],
  rates: Record<string, number>,
): Promise<number> {
  const { enqueueIn, enqueueManyIn } = session;
  if (!enqueueIn || !enqueueManyIn) return 0;
  const pool = new pg.Pool({ connectionString: place.postgresUrl, max: CALLERS });
  await pool.query("create table app_order (id bigserial primary key, what text not null)");
  const transaction = async (work: (client: pg.PoolClient) => Promise<void>, end = "commit") => {
    const client = await pool.connect();
    try {
      await client.query("begin");
      await client.query("insert into app_order (what) values ($1)", ["an order"]);
      await work(client);
      await client.query(end);
    } finally {
      client.release();
    }
  };
  // Rolled back, so nothing may be left of it: the count at the end tells whether the transaction was really joined.
  await transaction((client) => enqueueIn.call(session, client, { n: 0 }), "rollback");
  await transaction((client) => enqueueManyIn.call(session, client, inputs(0, 10)), "rollback");
  rates.singleInTx = await rateOf(params.inTransaction, async () => {
    for (let n = 0; n < params.inTransaction; n++) {
      await transaction((client) => enqueueIn.call(session, client, { n }));
    }
  });
  const batch = inputs(0, params.perTransaction);
  const batches = Math.ceil(params.bulkInTransaction / params.perTransaction);
  rates.bulkInTx = await rateOf(batches * params.perTransaction, async () => {
    for (let sent = 0; sent < batches; sent++) {
      await transaction((client) => enqueueManyIn.call(session, client, batch));
    }
  });
  await pool.end();
  return params.inTransaction + batches * params.perTransaction;
}

/** As autovacuum would soon after a bulk load; without it graphile's single enqueues scan the whole table. */
async function analyze(contestant: Contestant, place: Place): Promise<void> {
  if (contestant.store !== "postgres") return;
  const client = new pg.Client({ connectionString: place.postgresUrl });
  await client.connect();
  await client.query("analyze");
  await client.end();
}

async function rateOf(jobs: number, work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return jobs / ((performance.now() - began) / 1000);
}

async function concurrently(
  callers: number,
  jobs: number,
  call: (n: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const caller = async () => {
    for (let n = next++; n < jobs; n = next++) await call(n);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
