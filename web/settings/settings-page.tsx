import { useQuery } from "@tanstack/react-query";
import type { SettingJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { ErrorNotice, PageHead, Skeleton } from "../ui/page.js";
import { type Column, Table } from "../ui/table.js";

const columns: Column<SettingJson>[] = [
  { title: "Setting", wide: true, cell: ({ name }) => <code className="breaks">{name}</code> },
  {
    title: "Value",
    cell: ({ value }) =>
      value === null ? <span className="muted">not set</span> : <code className="breaks">{value}</code>,
  },
  {
    title: "From",
    cell: ({ is_default }) => (is_default ? <span className="muted">default</span> : "set here"),
    narrow: true,
  },
  { title: "Meaning", wide: true, cell: ({ about }) => <span className="muted">{about}</span> },
];

export function SettingsPage() {
  const { data, error, refetch } = useQuery({
    queryKey: ["settings"],
    queryFn: ({ signal }) => api.listSettings({}, signal),
  });
  return (
    <>
      <PageHead
        title="Settings"
        beside={<span className="muted">in force in this server; flags, environment and file decide</span>}
      />
      <section className="panel flush list" aria-label="Settings in force">
        {error && !data && <ErrorNotice error={error} retry={() => void refetch()} />}
        {!data && !error && <Skeleton lines={12} />}
        {data && (
          <Table caption="Settings in force" columns={columns} rows={data.items} keyOf={({ name }) => name} />
        )}
      </section>
    </>
  );
}
