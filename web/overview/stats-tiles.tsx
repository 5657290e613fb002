import type { StatsJson } from "../../src/http/client.js";
import { Link } from "../router.js";
import { useMay } from "../session.js";
import { counted, whole } from "../ui/numbers.js";
import { shortDuration, Time } from "../ui/time.js";

export function StatsTiles({ stats }: { stats: StatsJson }) {
  const may = useMay();
  const { waiting, workers } = stats;
  const sum = (of: (bucket: StatsJson["buckets"][number]) => number) =>
    stats.buckets.reduce((total, bucket) => total + of(bucket), 0);
  return (
    <div className="tiles">
      <Tile name="Ready" value={counted(waiting.ready)} href="/jobs?state=PENDING">
        {waiting.oldest_ready_at ? (
          <>
            oldest <Time at={waiting.oldest_ready_at} />
          </>
        ) : (
          "nothing waits"
        )}
      </Tile>
      <Tile name="Running" value={whole(waiting.running)} href="/jobs?state=RUNNING">
        of {whole(workers.concurrency)} slots
      </Tile>
      <Tile name="Delayed" value={counted(waiting.delayed)}>
        due later
      </Tile>
      <Tile name="Succeeded" value={whole(sum((bucket) => bucket.succeeded))} href="/jobs?state=SUCCEEDED">
        in this time
      </Tile>
      <Tile
        name="Failed attempts"
        value={whole(sum((bucket) => bucket.failed))}
        href="/jobs?state=FAILED_TERMINAL"
      >
        in this time
      </Tile>
      <Tile name="Wait" value={stats.wait ? shortDuration(stats.wait.p90) : "–"}>
        90th percentile
      </Tile>
      <Tile name="Run" value={stats.run ? shortDuration(stats.run.p90) : "–"}>
        90th percentile
      </Tile>
      <Tile name="Workers" value={whole(workers.alive)} {...(may("listWorkers") ? { href: "/workers" } : {})}>
        {workers.draining > 0 ? `${workers.draining} draining` : "alive"}
      </Tile>
    </div>
  );
}

function Tile(props: { name: string; value: string; href?: string; children: React.ReactNode }) {
  const inner = (
    <>
      <span className="tile-name">{props.name}</span>
      <span className="tile-value">{props.value}</span>
      <span className="tile-note">{props.children}</span>
    </>
  );
  if (!props.href) return <div className="tile">{inner}</div>;
  return (
    <Link className="tile" href={props.href}>
      {inner}
    </Link>
  );
}
