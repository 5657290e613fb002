import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { QueueJson } from "../../src/http/client.js";
import { api, LIVE_MS } from "../api.js";
import { Link } from "../router.js";
import { useMay } from "../session.js";
import { Icon } from "../ui/icons.js";
import { counted, whole } from "../ui/numbers.js";
import { Empty, ErrorNotice, PageHead, Skeleton } from "../ui/page.js";
import { Badge } from "../ui/state.js";
import { type Column, Table } from "../ui/table.js";
import { shortDuration, Time } from "../ui/time.js";
import { PauseDialog } from "./pause-dialog.js";

export function QueuesPage() {
  const may = useMay();
  const [changing, setChanging] = useState<QueueJson>();
  const { data, error, refetch } = useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => api.listQueues({}, signal),
    refetchInterval: LIVE_MS,
  });
  const columns: Column<QueueJson>[] = [
    {
      title: "Queue",
      cell: ({ queue }) => <Link href={`/jobs?${new URLSearchParams({ queue })}`}>{queue}</Link>,
    },
    { title: "State", cell: ({ paused }) => <QueueState paused={paused} />, narrow: true },
    { title: "Ready", cell: ({ ready }) => counted(ready), number: true },
    { title: "Running", cell: ({ running }) => whole(running), number: true },
    { title: "Oldest", cell: ({ oldest_ready_at }) => <Time at={oldest_ready_at} /> },
    { title: "Ageing", cell: ({ ageing_seconds }) => <Ageing seconds={ageing_seconds} /> },
    ...(may("pauseQueue")
      ? [
          {
            title: "Actions",
            unseen: true,
            cell: (queue: QueueJson) => <Switch queue={queue} onClick={() => setChanging(queue)} />,
            narrow: true,
          },
        ]
      : []),
  ];
  return (
    <>
      <PageHead title="Queues" />
      <section className="panel flush list" aria-label="Queues">
        {error && !data && <ErrorNotice error={error} retry={() => void refetch()} />}
        {!data && !error && <Skeleton lines={6} />}
        {data?.items.length === 0 && (
          <Empty
            title="No queues in use"
            command="oracle-worker enqueue summarize_text --queue docs --input '{}'"
          >
            A queue exists as soon as a job waits in it or it is paused.
          </Empty>
        )}
        {data && data.items.length > 0 && (
          <Table caption="Queues" columns={columns} rows={data.items} keyOf={({ queue }) => queue} />
        )}
      </section>
      {changing && <PauseDialog queue={changing} onClose={() => setChanging(undefined)} />}
    </>
  );
}

function QueueState({ paused }: { paused: boolean }) {
  return paused ? (
    <Badge tone="warn" icon="pause" word="Paused" />
  ) : (
    <Badge tone="good" icon="play" word="Open" />
  );
}

function Ageing({ seconds }: { seconds: number | null }) {
  if (seconds === null) return <span className="muted">strict priority</span>;
  return (
    <span title="waiting this long counts as one point of priority">{shortDuration(seconds)} a point</span>
  );
}

function Switch({ queue, onClick }: { queue: QueueJson; onClick: () => void }) {
  return (
    <button type="button" className="button" onClick={onClick}>
      <Icon name={queue.paused ? "play" : "pause"} />
      {queue.paused ? "Resume…" : "Pause…"}
      <span className="visually-hidden"> {queue.queue}</span>
    </button>
  );
}
