import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { AnswerOf, JobJson } from "../../src/http/client.js";
import { api, LIVE_MS } from "../api.js";
import type { JobFilters } from "./filters.js";

const PAGE = 50;
const MOST = 200;

type Page = AnswerOf<"listJobs">;

export interface SteadyJobs {
  page: Page | undefined;
  /** Shown rows that the filter no longer finds. */
  gone: Set<string>;
  /** Found since, and not shown yet. */
  fresh: number;
  showFresh: () => void;
  error: Error | null;
  retry: () => void;
}

/**
 * A page of jobs that stays where it is: rows change in place, and those that come or go do so when the person
 * asks for it. Otherwise a click lands on a row that was another one a moment ago.
 */
export function useSteadyJobs(filters: JobFilters): SteadyJobs {
  const key = JSON.stringify(filters);
  const [shown, setShown] = useState<{ key: string; page: Page }>();
  const steady = shown?.key === key ? shown.page : undefined;
  const [room, setRoom] = useState(0);
  const { data, error, refetch, isPlaceholderData } = useQuery({
    queryKey: ["jobs", filters, room],
    queryFn: ({ signal }) => api.listJobs({ query: { ...filters, limit: PAGE + room } }, signal),
    refetchInterval: LIVE_MS,
    placeholderData: keepPreviousData,
  });
  const latest = isPlaceholderData && !steady ? undefined : data;
  if (latest && (!steady || steady.items.length === 0) && steady !== latest) {
    setShown({ key, page: latest });
  }
  const fresh = steady && latest ? countFresh(steady, latest) : 0;
  // Rows pushed off the page by newer ones are still read, to keep them up to date.
  const wanted = Math.min(MOST - PAGE, fresh);
  if (wanted > room) setRoom(wanted);
  return {
    page: steady && latest ? update(steady, latest) : (steady ?? latest),
    gone: steady && latest ? findGone(steady, latest) : new Set(),
    fresh,
    showFresh: () => {
      setRoom(0);
      setShown(undefined);
      void refetch();
    },
    error: data ? null : error,
    retry: () => void refetch(),
  };
}

function update(steady: Page, latest: Page): Page {
  const byId = new Map(latest.items.map((job) => [job.job_id, job]));
  return { ...steady, items: steady.items.map((job) => byId.get(job.job_id) ?? job) };
}

function countFresh(steady: Page, latest: Page): number {
  const newest = steady.items[0]?.created_at ?? "";
  const known = new Set(steady.items.map((job) => job.job_id));
  return latest.items.filter((job) => job.created_at >= newest && !known.has(job.job_id)).length;
}

function findGone(steady: Page, latest: Page): Set<string> {
  const found = new Set(latest.items.map((job) => job.job_id));
  const last = latest.items.at(-1);
  const covered = (job: JobJson) => latest.next === null || (last && job.created_at > last.created_at);
  return new Set(
    steady.items.filter((job) => !found.has(job.job_id) && covered(job)).map((job) => job.job_id),
  );
}
