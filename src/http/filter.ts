import type { z } from "zod";
import type { JobFilter } from "../store/list.js";
import type { bulkChange, jobQuery } from "./schemas/jobs.js";

type Given = Omit<z.output<typeof jobQuery> | z.output<typeof bulkChange>, "limit" | "dry_run">;

/** Which jobs a list or a bulk command means. */
export function toFilter(given: Given, tenant: string | undefined): JobFilter {
  return {
    state: given.state,
    type: given.type,
    queue: given.queue,
    tenantId: tenant,
    specHash: given.spec_hash,
    held: given.held,
    text: given.text,
    createdAfter: given.created_after === undefined ? undefined : new Date(given.created_after),
    createdBefore: given.created_before === undefined ? undefined : new Date(given.created_before),
  };
}
