import type { Settings } from "../core/settings.js";
import { HealthServer } from "../observe/health-server.js";
import { addUp, type MetricsSnapshot } from "../observe/metrics.js";
import { queueGauges } from "../observe/queue-gauges.js";
import type { Database } from "../store/database.js";
import { queueDepths } from "../store/depths.js";
import type { Supervisor } from "../worker/supervisor.js";

/** Every address: a probe comes from outside the container. There is nothing secret on the pages. */
const HOST = "0.0.0.0";
/** A scrape more often than this sees the same depths: counting them reads the whole of the ready rows. */
const DEPTHS_MS = 10_000;

/** Answers probes and scrapes for a supervisor and its processes, if a port is set. Returns what stops it. */
export async function serveHealth(
  supervisor: Supervisor,
  db: Database,
  { HEALTH_PORT: port, REDIS_URL: redisUrl }: Settings,
): Promise<() => Promise<void>> {
  if (port === 0) return async () => {};
  let counted = Number.NEGATIVE_INFINITY;
  let depths: Promise<string> | undefined;
  const server = new HealthServer({
    live: () => supervisor.trouble(),
    ready: async () => {
      if (supervisor.draining) return "draining";
      return supervisor.trouble() ?? (await db.ping());
    },
    remark: async () => {
      if (redisUrl === undefined) return undefined;
      const reasons = (await supervisor.ask("redisIsAway")) as (string | null)[];
      const why = reasons.find((reason) => reason !== null);
      return why && `Redis is away, NOTIFY and polling take over: ${why}`;
    },
    metrics: async () => {
      if (performance.now() - counted > DEPTHS_MS) {
        counted = performance.now();
        depths = queueDepths(db).then(queueGauges, () => "");
      }
      const snapshots = (await supervisor.ask("metrics")) as MetricsSnapshot[];
      return `${await addUp(snapshots)}\n${await depths}`;
    },
  });
  await server.listen(port, HOST);
  return () => server.close();
}
