import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { LogLineJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { keys } from "./use-job.js";

/** More than anybody reads, and not more than a page can hold. */
export const MOST_LINES = 5_000;
const PAGE = 1_000;

/** An attempt's log; the stream adds what comes. */
export function useLogs(id: string, attempt: number) {
  const queries = useQueryClient();
  const queryKey = keys.logs(id, attempt);
  return useQuery({
    queryKey,
    queryFn: async ({ signal }) => {
      const lines = await readAll(id, attempt, signal);
      // Lines that the stream brought meanwhile must not get lost.
      return mergeLines(lines, queries.getQueryData<LogLineJson[]>(queryKey) ?? []);
    },
    enabled: attempt > 0,
  });
}

async function readAll(id: string, attempt: number, signal: AbortSignal): Promise<LogLineJson[]> {
  const lines: LogLineJson[] = [];
  let cursor: string | undefined;
  do {
    const query = { attempt, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const page = await api.listLogs({ params: { id }, query }, signal);
    lines.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && lines.length < MOST_LINES);
  return lines;
}

export function mergeLines(lines: LogLineJson[], more: LogLineJson[]): LogLineJson[] {
  const known = new Set(lines.map(({ seq }) => seq));
  const added = more.filter(({ seq }) => !known.has(seq));
  return added.length === 0 ? lines : [...lines, ...added].sort((a, b) => a.seq - b.seq).slice(-MOST_LINES);
}
