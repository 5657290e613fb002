import type { Series, WorkloadResult } from "../rounds.ts";
import type { Contestant } from "../types.ts";

/** One metric of a workload with everyone in it, in the order in which the contestants are listed. */
export interface Group {
  metric: string;
  unit: string;
  better: "higher" | "lower";
  rows: Array<Series & { ratio: number | undefined; side: Contestant["side"] }>;
}

/** Puts each figure beside the best peer of the same run, of those on PostgreSQL if there are any; above 1 is better for 'higher', worse for 'lower'. */
export function groupByMetric(result: WorkloadResult, contestants: Contestant[]): Group[] {
  const known = new Map(contestants.map((contestant) => [contestant.name, contestant]));
  const groups: Group[] = [];
  for (const metric of new Set(result.series.map((series) => series.metric))) {
    const series = result.series.filter((other) => other.metric === metric);
    const first = series[0];
    if (!first) continue;
    const best = result.ratios ? bestPeer(series, known, first.better) : undefined;
    const rows = contestants.flatMap(({ name, side }) => {
      const own = series.find((other) => other.contestant === name);
      return own ? [{ ...own, side, ratio: best === undefined ? undefined : own.median / best }] : [];
    });
    groups.push({ metric, unit: first.unit, better: first.better, rows });
  }
  return groups;
}

function bestPeer(
  series: Series[],
  known: Map<string, Contestant>,
  better: "higher" | "lower",
): number | undefined {
  const peers = series.filter(({ contestant }) => known.get(contestant)?.side === "peer");
  const onPostgres = peers.filter(({ contestant }) => known.get(contestant)?.store === "postgres");
  const medians = (onPostgres.length > 0 ? onPostgres : peers)
    .map((own) => own.median)
    .filter((value) => Number.isFinite(value) && value > 0);
  if (medians.length === 0) return undefined;
  return better === "higher" ? Math.max(...medians) : Math.min(...medians);
}

/** Few digits, as many as mean something: 31.2 k, 845, 3.52. */
export function short(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "never";
  if (Number.isNaN(value)) return "no value";
  const size = Math.abs(value);
  if (size >= 10_000) return `${(value / 1000).toFixed(1)} k`;
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return value.toFixed(2);
}
