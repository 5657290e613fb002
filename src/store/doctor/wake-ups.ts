import { randomUUID } from "node:crypto";
import pg from "pg";
import { type Database, statement } from "../database.js";
import { type Check, ok, warn } from "./check.js";

const notify = statement<never>("doctor-notify", "SELECT pg_notify($1, $2)");

const HEAR_MS = 3_000;

/** A wake-up sent on one connection is heard on another, as a worker's would be. */
export const wakeUps: Check = {
  name: "wake-ups",
  async examine({ db }) {
    const why = await hears(db);
    if (why === undefined) return ok("LISTEN hears what NOTIFY says");
    return [
      warn(
        `a wake-up did not arrive: ${why}; workers find jobs by polling only`,
        "if a pooler is in between, set DIRECT_DATABASE_URL to the server itself",
      ),
    ];
  },
};

/** Undefined, or why nothing was heard. */
async function hears(db: Database): Promise<string | undefined> {
  // Workers pass over a word that is no queue's.
  const channel = `${db.schema}_wake`;
  const word = `doctor-${randomUUID()}`;
  const client = new pg.Client(db.connectionConfig(db.directUrl));
  client.on("error", () => {});
  try {
    await client.connect();
    const heard = new Promise<boolean>((resolve) => {
      client.on("notification", ({ payload }) => payload === word && resolve(true));
      setTimeout(() => resolve(false), HEAR_MS).unref();
    });
    await client.query(`LISTEN ${channel}`);
    await db.query(notify, [channel, word]);
    return (await heard) ? undefined : `nothing within ${HEAR_MS / 1000} s`;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await client.end().catch(() => {});
  }
}
