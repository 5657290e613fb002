import { jobStates } from "../../src/core/states.js";
import type { RequestOf } from "../../src/http/client.js";

type Query = NonNullable<RequestOf<"listJobs">["query"]>;

/** What the address of the jobs page says: the same names as in the API. */
export interface JobFilters extends Pick<Query, "state" | "type" | "queue" | "tenant" | "text" | "held"> {
  cursor?: string | undefined;
}

export function readFilters(search: URLSearchParams): JobFilters {
  const word = (name: string) => search.get(name)?.trim() || undefined;
  return {
    state: jobStates.find((state) => state === word("state")),
    held: search.get("held") === "true" || undefined,
    type: word("type"),
    queue: word("queue"),
    tenant: word("tenant"),
    text: word("text"),
    cursor: word("cursor"),
  };
}

/** In words, for the dialogs of bulk commands. */
export function describeFilters(filters: JobFilters): string {
  const parts = [
    filters.type && `of type ${filters.type}`,
    filters.queue && `in queue ${filters.queue}`,
    filters.tenant && `of tenant ${filters.tenant}`,
    filters.text && `matching “${filters.text}”`,
  ];
  return parts.filter(Boolean).join(", ");
}
