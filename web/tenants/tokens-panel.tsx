import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { TokenJson } from "../../src/http/client.js";
import { api, LIVE_MS } from "../api.js";
import { useMay } from "../session.js";
import { Id } from "../ui/copy.js";
import { Empty, ErrorNotice, Panel, Skeleton } from "../ui/page.js";
import { Badge } from "../ui/state.js";
import { type Column, Table } from "../ui/table.js";
import { Time } from "../ui/time.js";
import { NewTokenDialog } from "./new-token-dialog.js";
import { RevokeDialog } from "./revoke-dialog.js";

export function TokensPanel() {
  const may = useMay();
  const [adding, setAdding] = useState(false);
  const [revoking, setRevoking] = useState<TokenJson>();
  const {
    data: tokens,
    error,
    refetch,
  } = useQuery({
    queryKey: ["tokens"],
    queryFn: async ({ signal }) => (await api.listTokens({}, signal)).items,
    refetchInterval: LIVE_MS,
  });
  return (
    <Panel
      title="Tokens"
      flush
      aside={
        may("addToken") && (
          <button type="button" className="button primary" onClick={() => setAdding(true)}>
            New token…
          </button>
        )
      }
    >
      {error && !tokens && <ErrorNotice error={error} retry={() => void refetch()} />}
      {!tokens && !error && <Skeleton lines={4} />}
      {tokens?.length === 0 && (
        <Empty title="No tokens yet" command="oracle-worker tenants token team-a --role operator">
          A token lets a program or a person in.
        </Empty>
      )}
      {tokens && tokens.length > 0 && (
        <Table
          caption="Tokens"
          columns={columnsFor(may("revokeToken") ? setRevoking : undefined)}
          rows={tokens}
          keyOf={({ token_id }) => token_id}
          rowClass={({ revoked_at }) => (revoked_at ? "gone" : undefined)}
        />
      )}
      {adding && <NewTokenDialog onClose={() => setAdding(false)} />}
      {revoking && <RevokeDialog token={revoking} onClose={() => setRevoking(undefined)} />}
    </Panel>
  );
}

function columnsFor(revoke: ((token: TokenJson) => void) | undefined): Column<TokenJson>[] {
  return [
    { title: "Name", cell: ({ name }) => <span className="breaks">{name ?? "–"}</span> },
    { title: "Token", cell: ({ token_id }) => <Id value={token_id} what="token id" />, narrow: true },
    {
      title: "Tenant",
      cell: ({ tenant_id }) => <span className="breaks">{tenant_id ?? "all tenants"}</span>,
    },
    { title: "Role", cell: ({ role }) => role, narrow: true },
    { title: "Made", cell: ({ created_at }) => <Time at={created_at} />, narrow: true },
    { title: "Last used", cell: ({ last_used_at }) => <Time at={last_used_at} />, narrow: true },
    {
      title: "State",
      narrow: true,
      cell: ({ revoked_at }) =>
        revoked_at ? (
          <Badge tone="calm" icon="slash" word="Revoked" />
        ) : (
          <Badge tone="good" icon="check" word="Good" />
        ),
    },
    ...(revoke
      ? [
          {
            title: "Actions",
            unseen: true,
            narrow: true,
            cell: (token: TokenJson) =>
              token.revoked_at === null && (
                <button type="button" className="button danger" onClick={() => revoke(token)}>
                  Revoke…<span className="visually-hidden"> {token.name ?? token.token_id}</span>
                </button>
              ),
          },
        ]
      : []),
  ];
}
