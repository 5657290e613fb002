import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

/** One id per process: a host-and-pid pair repeats, and a supervisor frees leases by this name. */
export function uniqueWorkerId(name = hostname()): string {
  return `${name}.${randomBytes(4).toString("hex")}`;
}
