import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import type { RequestOf, StatsJson } from "../../src/http/client.js";
import { api, LIVE_MS } from "../api.js";

export type Window = NonNullable<NonNullable<RequestOf<"getStats">["query"]>["window"]>;

export function useStats(window: Window) {
  return useQuery({
    queryKey: ["stats", window],
    queryFn: ({ signal }) => api.getStats({ query: { window } }, signal),
    refetchInterval: LIVE_MS,
    placeholderData: keepPreviousData,
  });
}

export interface Depth {
  times: number[];
  ready: number[];
  delayed: number[];
  running: number[];
}

const MOST_SAMPLES = 1200;
const depth: Depth = { times: [], ready: [], delayed: [], running: [] };

/** How many jobs waited and ran, sampled while this tab is open: the tables keep no such history. */
export function useDepth(stats: StatsJson | undefined): Depth {
  const last = useRef<Depth>({ ...depth });
  if (!stats) return last.current;
  const at = Date.parse(stats.at) / 1000;
  if (at <= (depth.times.at(-1) ?? 0)) return last.current;
  depth.times = [...depth.times, at].slice(-MOST_SAMPLES);
  depth.ready = [...depth.ready, stats.waiting.ready.count].slice(-MOST_SAMPLES);
  depth.delayed = [...depth.delayed, stats.waiting.delayed.count].slice(-MOST_SAMPLES);
  depth.running = [...depth.running, stats.waiting.running].slice(-MOST_SAMPLES);
  last.current = { ...depth };
  return last.current;
}
