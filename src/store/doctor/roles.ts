import { readLoginPower } from "../login-power.js";
import { type Check, fail, ok, warn } from "./check.js";

/** The login can be what programs are, and could not be more. */
export const roles: Check = {
  name: "roles",
  async examine({ db, settings }) {
    // The connection took the worker's role, or could not: that is an error which names the mend.
    const [power] = await db.query(readLoginPower, [null]);
    if (!power?.why) return ok(`the login ${power?.login} can be no more than its roles`);
    const found = settings.STRICT_ROLES ? fail : warn;
    return [
      found(
        `the login ${power.login} ${power.why}: it could step out of the restricted role`,
        "give workers a login of their own: `oracle-worker migrate roles --login NAME`",
      ),
    ];
  },
};
