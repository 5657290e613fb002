/** How often each bucket was met. Buckets grow by a fifth, so a percentile is right within a tenth. */
export type Histogram = Record<string, number>;

const SMALLEST_SECONDS = 0.001;
const PER_DOUBLING = 4;

export function bucketOf(seconds: number): number {
  return Math.max(
    0,
    Math.round(Math.log2(Math.max(seconds, SMALLEST_SECONDS) / SMALLEST_SECONDS) * PER_DOUBLING),
  );
}

/** The middle of a bucket. */
function secondsOf(bucket: number): number {
  return SMALLEST_SECONDS * 2 ** (bucket / PER_DOUBLING);
}

export function countIn(histogram: Histogram, seconds: number): void {
  const bucket = bucketOf(seconds);
  histogram[bucket] = (histogram[bucket] ?? 0) + 1;
}

export function addTo(histogram: Histogram, other: Histogram): void {
  for (const [bucket, n] of Object.entries(other)) histogram[bucket] = (histogram[bucket] ?? 0) + n;
}

export interface Percentiles {
  p50: number;
  p90: number;
  p99: number;
  /** How many were looked at. */
  of: number;
}

export function percentiles(histogram: Histogram): Percentiles | null {
  const buckets = Object.entries(histogram)
    .map(([bucket, n]) => ({ bucket: Number(bucket), n }))
    .sort((a, b) => a.bucket - b.bucket);
  const of = buckets.reduce((sum, { n }) => sum + n, 0);
  if (of === 0) return null;
  const at = (share: number) => {
    let left = Math.ceil(of * share);
    for (const { bucket, n } of buckets) {
      left -= n;
      if (left <= 0) return secondsOf(bucket);
    }
    return secondsOf(buckets.at(-1)?.bucket ?? 0);
  };
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), of };
}
