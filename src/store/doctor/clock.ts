import { statement } from "../database.js";
import { type Check, ok, warn } from "./check.js";

const readClock = statement<{ ms: number }>(
  "doctor-clock",
  "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms",
);

/** More than a busy minute of two synchronised machines would show. */
const ACCEPTED_MS = 2_000;

/** Only the database's clock decides, but logs, ids and what people read have this machine's. */
export const clock: Check = {
  name: "clock",
  async examine({ db }) {
    const before = Date.now();
    const [row] = await db.query(readClock, []);
    const after = Date.now();
    // The database looked at its clock at some moment in between; half the way is the error of the guess.
    const apart = Math.abs((row?.ms ?? 0) - (before + after) / 2) - (after - before) / 2;
    if (apart <= ACCEPTED_MS) return ok("this machine and the database agree");
    return [
      warn(
        `this machine's clock and the database's are ${(apart / 1000).toFixed(1)} s apart`,
        "synchronise both machines (chrony, systemd-timesyncd); jobs run by the database's clock, logs show this one",
      ),
    ];
  },
};
