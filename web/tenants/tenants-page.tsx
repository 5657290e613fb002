import { useState } from "react";
import type { TenantJson } from "../../src/http/client.js";
import { Link } from "../router.js";
import { useMay } from "../session.js";
import { whole } from "../ui/numbers.js";
import { Empty, ErrorNotice, PageHead, Panel, Skeleton } from "../ui/page.js";
import { type Column, Table } from "../ui/table.js";
import { shortDuration, Time } from "../ui/time.js";
import { TenantDialog } from "./tenant-dialog.js";
import { rateText } from "./tenant-limits.js";
import { TokensPanel } from "./tokens-panel.js";
import { useTenants } from "./use-tenants.js";

export function TenantsPage() {
  const may = useMay();
  const { isPending } = useTenants();
  return (
    <>
      <PageHead title="Tenants" />
      <TenantList />
      {/* Not before the list above has its height: it would be pushed down. */}
      {!isPending && may("listTokens") && <TokensPanel />}
    </>
  );
}

function TenantList() {
  const may = useMay();
  const { data: tenants, error, refetch } = useTenants();
  const [editing, setEditing] = useState<TenantJson | "new">();
  const columns: Column<TenantJson>[] = [
    {
      title: "Tenant",
      cell: ({ tenant_id }) => (
        <Link className="breaks" href={`/jobs?${new URLSearchParams({ tenant: tenant_id })}`}>
          {tenant_id}
        </Link>
      ),
    },
    { title: "Weight", cell: ({ weight }) => weight, number: true },
    { title: "Running", cell: ({ running, max_running }) => ofMost(running, max_running), number: true },
    { title: "Waiting", cell: ({ waiting, max_waiting }) => ofMost(waiting, max_waiting), number: true },
    { title: "Starts", cell: ({ start_rate }) => rateText(start_rate) || "no limit", number: true },
    { title: "Jobs, last day", cell: ({ jobs }) => whole(jobs), number: true },
    { title: "Run time, last day", cell: ({ run_seconds }) => shortDuration(run_seconds), number: true },
    { title: "Tokens, last day", cell: ({ tokens }) => whole(tokens), number: true },
    { title: "Cost, last day", cell: ({ cost }) => Number(cost.toFixed(4)), number: true },
    { title: "Added", cell: ({ created_at }) => <Time at={created_at} />, narrow: true },
    ...(may("changeTenant")
      ? [
          {
            title: "Actions",
            unseen: true,
            narrow: true,
            cell: (tenant: TenantJson) => (
              <button type="button" className="button" onClick={() => setEditing(tenant)}>
                Limits…<span className="visually-hidden"> of {tenant.tenant_id}</span>
              </button>
            ),
          },
        ]
      : []),
  ];
  return (
    <Panel
      title="Shares and limits"
      flush
      aside={
        may("addTenant") && (
          <button type="button" className="button primary" onClick={() => setEditing("new")}>
            Add tenant…
          </button>
        )
      }
    >
      {error && !tenants && <ErrorNotice error={error} retry={() => void refetch()} />}
      {!tenants && !error && <Skeleton lines={4} />}
      {tenants?.length === 0 && (
        <Empty title="No tenants declared" command="oracle-worker tenants add team-a">
          Jobs without a tenant belong to “default”.
        </Empty>
      )}
      {tenants && tenants.length > 0 && (
        <Table caption="Tenants" columns={columns} rows={tenants} keyOf={({ tenant_id }) => tenant_id} />
      )}
      {editing && (
        <TenantDialog
          tenant={editing === "new" ? undefined : editing}
          onClose={() => setEditing(undefined)}
        />
      )}
    </Panel>
  );
}

function ofMost(now: number, most: number | null): string {
  return most === null ? whole(now) : `${whole(now)} of ${whole(most)}`;
}
