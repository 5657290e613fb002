/** The p-th quantile (0..1) of an ascending list, nearest rank: a value that was really measured. */
export function quantile(ascending: readonly number[], p: number): number {
  if (ascending.length === 0) return Number.NaN;
  const rank = Math.min(ascending.length - 1, Math.max(0, Math.ceil(p * ascending.length) - 1));
  return ascending[rank] ?? Number.NaN;
}

export function ascending(values: Iterable<number>): number[] {
  return [...values].sort((a, b) => a - b);
}

/** The middle value; the mean of the two middle ones for an even count. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export interface LatencySummary {
  count: number;
  p50: number;
  p99: number;
  p999: number;
  max: number;
}

export function summarize(latencies: Iterable<number>): LatencySummary {
  const sorted = ascending(latencies);
  return {
    count: sorted.length,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    p999: quantile(sorted, 0.999),
    max: sorted.at(-1) ?? Number.NaN,
  };
}

/** Wall clock in milliseconds with a fraction, comparable between processes of one machine. */
export function wallClock(): number {
  return performance.timeOrigin + performance.now();
}
