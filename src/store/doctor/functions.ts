import { statement } from "../database.js";
import { type Check, fail, ok } from "./check.js";

const readFunctions = statement<{ name: string; unpinned: boolean; open: boolean }>(
  "doctor-functions",
  `SELECT p.oid::regprocedure::text AS name, NOT pinned.is AS unpinned, open.is AS open
   FROM pg_catalog.pg_proc p
   CROSS JOIN LATERAL (SELECT EXISTS (
     SELECT FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%') AS is) pinned
   CROSS JOIN LATERAL (SELECT EXISTS (
     SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0) AS is) open
   WHERE p.pronamespace = '{schema}'::regnamespace AND p.prosecdef AND (NOT pinned.is OR open.is)
   ORDER BY 1`,
);

/** What runs with the owner's rights does only what it says, and only for those it is meant for. */
export const functions: Check = {
  name: "functions",
  async examine({ db }) {
    const found = await db.query(readFunctions, []);
    if (found.length === 0) return ok("those with the owner's rights are pinned and closed");
    return found.map(({ name, unpinned }) =>
      unpinned
        ? fail(
            `the function ${name} runs with its owner's rights and the caller's search_path`,
            `ALTER FUNCTION ${name} SET search_path = pg_catalog, pg_temp`,
          )
        : fail(
            `the function ${name} runs with its owner's rights for everybody`,
            `REVOKE ALL ON FUNCTION ${name} FROM PUBLIC`,
          ),
    );
  },
};
