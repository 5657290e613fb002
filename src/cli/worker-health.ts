import type { Settings } from "../core/settings.js";
import { databaseGauges } from "../observe/database-gauges.js";
import { HealthServer } from "../observe/health-server.js";
import { addUp, type MetricsSnapshot } from "../observe/metrics.js";
import type { Database } from "../store/database.js";
import { countWork } from "../store/depths.js";
import type { Supervisor } from "../worker/supervisor.js";

/** Every address: a probe comes from outside the container. There is nothing secret on the pages. */
const HOST = "0.0.0.0";

/** Answers probes and scrapes for a supervisor and its processes, if a port is set. Returns what stops it. */
export async function serveHealth(
  supervisor: Supervisor,
  db: Database,
  { HEALTH_PORT: port, REDIS_URL: redisUrl }: Settings,
): Promise<() => Promise<void>> {
  if (port === 0) return async () => {};
  const counted = databaseGauges(() => countWork(db));
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
      const snapshots = (await supervisor.ask("metrics")) as MetricsSnapshot[];
      return `${await addUp(snapshots)}\n${await counted()}`;
    },
  });
  await server.listen(port, HOST);
  return () => server.close();
}
