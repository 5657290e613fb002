import { useQuery } from "@tanstack/react-query";
import type { WorkerJson } from "../../src/http/client.js";
import { api, LIVE_MS } from "../api.js";
import { Empty, ErrorNotice, PageHead, Skeleton } from "../ui/page.js";
import { Badge } from "../ui/state.js";
import { type Column, Table } from "../ui/table.js";
import { Time } from "../ui/time.js";

const columns: Column<WorkerJson>[] = [
  { title: "State", cell: (worker) => <WorkerState worker={worker} />, narrow: true },
  { title: "Worker", cell: ({ worker_id }) => <code className="breaks">{worker_id}</code> },
  { title: "Host", cell: ({ host, pid }) => <span className="breaks">{`${host}, process ${pid}`}</span> },
  { title: "Running", cell: ({ running, concurrency }) => `${running} of ${concurrency}`, number: true },
  { title: "Queues", wide: true, cell: ({ queues }) => <span className="breaks">{queues.join(", ")}</span> },
  { title: "Types", wide: true, cell: ({ types }) => <span className="breaks">{types.join(", ")}</span> },
  { title: "Version", cell: ({ version }) => version, narrow: true },
  { title: "Started", cell: ({ started_at }) => <Time at={started_at} />, narrow: true },
  { title: "Seen", cell: ({ seen_at }) => <Time at={seen_at} />, narrow: true },
];

export function WorkersPage() {
  const { data, error, refetch } = useQuery({
    queryKey: ["workers"],
    queryFn: ({ signal }) => api.listWorkers({}, signal),
    refetchInterval: LIVE_MS,
  });
  return (
    <>
      <PageHead title="Workers" />
      <section className="panel flush list" aria-label="Workers">
        {error && !data && <ErrorNotice error={error} retry={() => void refetch()} />}
        {!data && !error && <Skeleton lines={6} />}
        {data?.items.length === 0 && (
          <Empty title="No worker is alive" command="oracle-worker work --handlers ./jobs">
            Jobs wait until one starts.
          </Empty>
        )}
        {data && data.items.length > 0 && (
          <Table caption="Workers" columns={columns} rows={data.items} keyOf={({ worker_id }) => worker_id} />
        )}
      </section>
    </>
  );
}

function WorkerState({ worker }: { worker: WorkerJson }) {
  if (!worker.alive) return <Badge tone="bad" icon="cross" word="Not seen" />;
  if (worker.draining) return <Badge tone="warn" icon="pause" word="Draining" />;
  return <Badge tone="good" icon="check" word="Alive" />;
}
