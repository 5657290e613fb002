import { OracleError } from "./errors.js";

/** So many in so many seconds. */
export interface Rate {
  count: number;
  seconds: number;
}

/** What a tenant may do; null is no limit. */
export interface TenantLimits {
  /** Its share of a queue, against the other tenants' weights. */
  weight: number;
  /** Jobs that may run at a time. */
  maxRunning: number | null;
  /** Jobs that may wait; beyond them submissions are refused. */
  maxWaiting: number | null;
  /** Jobs that may start; those beyond wait. */
  startRate: Rate | null;
  /** Jobs that may be submitted; those beyond are refused. */
  enqueueRate: Rate | null;
  /** How long finished jobs are kept; null: as long as everybody's. */
  retentionSeconds: number | null;
}

/** What a tenant has used since a moment. */
export interface TenantUsage {
  /** Submitted. */
  jobs: number;
  /** Finished with a result. */
  succeeded: number;
  /** Started. */
  attempts: number;
  runSeconds: number;
  /** By the handlers' own word. */
  tokens: number;
  cost: number;
  /** Of inputs, results and artifacts, as they are stored. */
  bytes: number;
}

export interface Tenant extends TenantLimits, TenantUsage {
  tenantId: string;
  /** Null: it has no settings of its own. */
  createdAt: Date | null;
  waiting: number;
  running: number;
}

const MILLION = 1_000_000;

const bounds = {
  weight: [1, 1000],
  maxRunning: [0, MILLION],
  maxWaiting: [0, MILLION],
} as const;

/** Names the option and what would be right when a value is out of its bounds. */
export function checkTenantLimits(limits: Partial<TenantLimits>): Partial<TenantLimits> {
  for (const field of ["weight", "maxRunning", "maxWaiting"] as const) {
    const value = limits[field];
    const [least, most] = bounds[field];
    const none = value === undefined || (value === null && field !== "weight");
    if (!none && !isWhole(value, least, most)) {
      throw wrong(
        field,
        value,
        `a whole number from ${least} to ${most}${field === "weight" ? "" : ", or null"}`,
      );
    }
  }
  for (const field of ["startRate", "enqueueRate"] as const) {
    const rate = limits[field];
    if (!rate || (isWhole(rate.count, 1, MILLION) && isWhole(rate.seconds, 1, 86_400))) continue;
    throw wrong(field, JSON.stringify(rate), `{ count: 1 to ${MILLION}, seconds: 1 to 86400 }, or null`);
  }
  const { retentionSeconds } = limits;
  if (typeof retentionSeconds === "number" && !(retentionSeconds > 0 && Number.isFinite(retentionSeconds))) {
    throw wrong("retentionSeconds", retentionSeconds, "seconds above 0, or null");
  }
  return limits;
}

function isWhole(value: unknown, least: number, most: number): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= least && value <= most;
}

function wrong(field: string, value: unknown, right: string): OracleError {
  return new OracleError("INVALID_ARGUMENT", `${field} is ${String(value)}; it must be ${right}.`, { field });
}
