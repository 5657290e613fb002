import { findLeaks } from "../row-security.js";
import { type Check, fail, ok } from "./check.js";

/** Tenants are kept apart; programs refuse to start where they are not. */
export const rowSecurity: Check = {
  name: "row-level security",
  async examine({ db }) {
    const leaks = await findLeaks(db);
    if (leaks.length === 0) return ok("forced on every table with tenants' rows");
    return leaks.map(({ what, fix }) => fail(what, fix));
  },
};
