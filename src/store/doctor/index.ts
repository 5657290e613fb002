import { OracleError } from "../../core/errors.js";
import type { Check, Finding, Patient, Symptom } from "./check.js";
import { clock } from "./clock.js";
import { functions } from "./functions.js";
import { jobTypes } from "./job-types.js";
import { migrations } from "./migrations.js";
import { roles } from "./roles.js";
import { rowSecurity } from "./row-security.js";
import { server } from "./server.js";
import { snapshots } from "./snapshots.js";
import { stuckWork } from "./stuck-work.js";
import { tenantLogins } from "./tenant-logins.js";
import { wakeUps } from "./wake-ups.js";

/** In the order of the report. A new check is a file beside these and a name here. */
const checks: Check[] = [
  server,
  migrations,
  clock,
  roles,
  tenantLogins,
  rowSecurity,
  functions,
  wakeUps,
  snapshots(),
  jobTypes,
  stuckWork,
];

/** What is wrong with an installation, or will be. A check that cannot be made is a finding too. */
export async function examine(patient: Patient): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const check of checks) {
    const found = await check.examine(patient).catch((error: unknown) => {
      if (!(error instanceof OracleError)) throw error;
      return [{ level: "fail", message: error.message, fix: null } satisfies Symptom];
    });
    findings.push(...found.map((finding) => ({ check: check.name, ...finding })));
    // The others ask for tables that are not there yet.
    if (check === migrations && found.some(({ level }) => level === "fail")) break;
  }
  return findings;
}
