import pg from "pg";
import type { Contestant, Handler, JobInput, Place, QueueSession, RunningWorker } from "../types.ts";
import { ask, inPortions, installedVersion, pollUntil } from "./support.ts";

/** Not a queue: the least that PostgreSQL needs for insert → NOTIFY → LISTEN → claim → delete. */
export const barePg: Contestant = {
  name: "bare-pg",
  side: "floor",
  store: "postgres",
  version: () => `pg ${installedVersion("pg")}`,
  settings:
    "one table, one index; insert + pg_notify in one statement, one LISTEN connection, one claim connection",
  keeps: "durable; nothing kept: no lease, no retry, no result (the floor, not a contestant)",
  only: ["pickup", "pickup-loaded"],
  openQueue: open,
};

const INSERT = `with put as (insert into bare (data) select e from jsonb_array_elements($1::jsonb) e)
  select pg_notify('bare', '')`;
const CLAIM = `delete from bare where id = any(array(
  select id from bare order by id limit 500 for update skip locked)) returning data`;

async function open(place: Place): Promise<QueueSession> {
  const pool = new pg.Pool({ connectionString: place.postgresUrl, max: 2 });
  const insert = (inputs: JobInput[]) =>
    pool.query({ name: "put", text: INSERT, values: [JSON.stringify(inputs)] });
  return {
    install: async () =>
      void (await pool.query("create table bare (id bigserial primary key, data jsonb not null)")),
    enqueue: async (input) => void (await insert([input])),
    enqueueMany: (inputs) => inPortions(inputs, 5000, insert),
    startWorker: (handler) => startWorker(place, pool, handler),
    waiting: () => ask<number>(pool, "select count(*)::int as value from bare"),
    finished: async () => null,
    close: () => pool.end(),
  };
}

async function startWorker(place: Place, pool: pg.Pool, handler: Handler): Promise<RunningWorker> {
  const listener = new pg.Client({ connectionString: place.postgresUrl });
  const claimer = new pg.Client({ connectionString: place.postgresUrl });
  await Promise.all([listener.connect(), claimer.connect()]);
  let claiming = false;
  let again = false;
  const claim = async () => {
    if (claiming) {
      again = true;
      return;
    }
    claiming = true;
    do {
      again = false;
      const { rows } = await claimer.query<{ data: JobInput }>({ name: "claim", text: CLAIM });
      for (const row of rows) await handler(row.data);
      if (rows.length > 0) again = true;
    } while (again);
    claiming = false;
  };
  listener.on("notification", () => void claim());
  await listener.query("listen bare");
  await claim();
  return {
    drained: () => pollUntil(() => ask(pool, "select not exists (select 1 from bare) as value")),
    stop: async () => {
      await listener.end();
      await pollUntil(async () => !claiming);
      await claimer.end();
    },
  };
}
