import { type Activity, addActivity, noActivity } from "../../core/activity.js";
import { percentiles } from "../../core/histogram.js";
import { activitySince } from "../../store/activity.js";
import type { Database } from "../../store/database.js";
import { type QueueState, readQueues } from "../../store/fleet.js";
import { readAttention } from "../../store/stats.js";
import type { Handlers } from "../call.js";
import { isoOrNull } from "../to-json.js";
import type { StatsJson } from "../types.js";

/** Seconds of each window, and of the buckets it is told in. */
const windows = {
  "5m": [300, 10],
  "15m": [900, 10],
  "1h": [3600, 60],
  "6h": [21_600, 300],
  "24h": [86_400, 900],
} as const;

/** Many people look at the same page: the figures of a moment are made once. */
const REMEMBER_MS = 2_000;

export function statsRoutes(): Handlers<"getStats"> {
  const remembered = new Map<string, { stats: Promise<StatsJson>; until: number }>();
  return {
    async getStats({ query, tenant, within }) {
      const key = JSON.stringify([tenant ?? null, query.window]);
      const known = remembered.get(key);
      if (known && known.until > performance.now()) return known.stats;
      for (const [old, { until }] of remembered) if (until <= performance.now()) remembered.delete(old);
      const stats = within((db) => gather(db, tenant, query.window));
      remembered.set(key, { stats, until: performance.now() + REMEMBER_MS });
      stats.catch(() => remembered.delete(key));
      return stats;
    },
  };
}

async function gather(
  db: Database,
  tenant: string | undefined,
  window: keyof typeof windows,
): Promise<StatsJson> {
  const [windowSeconds, bucketSeconds] = windows[window];
  const now = Date.now() / 1000;
  const start = Math.floor(now / bucketSeconds) * bucketSeconds - windowSeconds;
  const slots = await activitySince(db, tenant, start);
  const queues = await readQueues(db);
  const attention = await readAttention(db, tenant);
  const { buckets, whole } = toBuckets(slots, start, bucketSeconds, windowSeconds);
  return {
    at: new Date(now * 1000).toISOString(),
    window_seconds: windowSeconds,
    bucket_seconds: bucketSeconds,
    waiting: {
      ready: totalReady(queues),
      delayed: attention.delayed,
      held: attention.held,
      running: attention.running,
      oldest_ready_at: isoOrNull(oldestReady(queues)),
    },
    buckets,
    wait: percentiles(whole.wait),
    run: percentiles(whole.run),
    workers: attention.workers,
    attention: {
      held: attention.held,
      effects_in_doubt: attention.inDoubt,
      dead_letters: attention.dead,
      unserved_types: attention.unserved,
    },
  };
}

function toBuckets(
  slots: { slot: number; counts: Activity }[],
  start: number,
  bucketSeconds: number,
  windowSeconds: number,
) {
  const whole = noActivity();
  const sums = Array.from({ length: windowSeconds / bucketSeconds + 1 }, noActivity);
  for (const { slot, counts } of slots) {
    const sum = sums[Math.floor((slot - start) / bucketSeconds)];
    // A slot of the future is one of a clock that is ahead of this one.
    if (!sum) continue;
    addActivity(sum, counts);
    addActivity(whole, counts);
  }
  const buckets = sums.map((sum, index) => ({
    at: new Date((start + index * bucketSeconds) * 1000).toISOString(),
    succeeded: sum.succeeded,
    failed: Object.values(sum.failed).reduce((total, n) => total + n, 0),
    failures: sum.failed,
    wait: percentiles(sum.wait),
    run: percentiles(sum.run),
  }));
  return { buckets, whole };
}

function totalReady(queues: QueueState[]) {
  const count = queues.reduce((sum, { ready }) => sum + ready.count, 0);
  return { count, more: queues.some(({ ready }) => ready.more) };
}

function oldestReady(queues: QueueState[]): Date | null {
  const moments = queues.flatMap(({ oldestReadyAt }) => oldestReadyAt ?? []);
  return moments.sort((a, b) => Number(a) - Number(b))[0] ?? null;
}
