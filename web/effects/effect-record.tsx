import { useState } from "react";
import type { EffectJson } from "../../src/http/client.js";
import { JobLink } from "../jobs/job-link.js";
import { useMay } from "../session.js";
import { Id } from "../ui/copy.js";
import { Json } from "../ui/json.js";
import { StateBadge } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { ResolveDialog } from "./resolve-dialog.js";

const kinds: Record<EffectJson["kind"], string> = {
  database: "database: commits together with the result",
  idempotent: "idempotent: sent again with the same key",
  reconcilable: "reconcilable: a lookup decides",
  unsafe: "unsafe: never sent twice",
};

/** One call to the outside: what was meant, what came back, and a person's word where neither is known. */
export function EffectRecord({ effect, withJob = false }: { effect: EffectJson; withJob?: boolean }) {
  const may = useMay();
  const [resolving, setResolving] = useState(false);
  return (
    <li>
      <div className="row">
        <StateBadge state={effect.state} />
        <strong className="breaks">{effect.name}</strong>
        <span className="muted small">{kinds[effect.kind]}</span>
        {effect.state === "IN_DOUBT" && may("resolveEffect") && (
          <button type="button" className="button" onClick={() => setResolving(true)}>
            Resolve…
          </button>
        )}
      </div>
      <p className="row small">
        {withJob && (
          <>
            <span className="muted">job</span>
            <JobLink jobId={effect.job_id} />
          </>
        )}
        <span className="muted">key</span> <Id value={effect.idempotency_key} what="idempotency key" />
      </p>
      <History effect={effect} />
      {effect.error && (
        <p className="error-text">
          <code>{effect.error.code}</code> {effect.error.message}
        </p>
      )}
      {effect.evidence && (
        <p className="breaks">
          <span className="muted">Resolved by {effect.resolved_by ?? "a person"}:</span> {effect.evidence}
        </p>
      )}
      <details>
        <summary>Request{effect.response === null ? "" : " and response"}</summary>
        <div className="stack">
          <Json value={effect.request} what={`request of ${effect.name}`} />
          {effect.response !== null && <Json value={effect.response} what={`response to ${effect.name}`} />}
        </div>
      </details>
      {resolving && <ResolveDialog effect={effect} onClose={() => setResolving(false)} />}
    </li>
  );
}

function History({ effect }: { effect: EffectJson }) {
  const moments: [string, string | null][] = [
    ["planned", effect.planned_at],
    [effect.approved_by ? `approved by ${effect.approved_by}` : "approved", effect.approved_at],
    [effect.dispatches > 1 ? `sent ${effect.dispatches} times, last` : "sent", effect.dispatched_at],
    ["in doubt since", effect.in_doubt_at],
    ["settled", effect.settled_at],
  ];
  return (
    <p className="muted small row">
      attempt {effect.attempt_no}
      {moments.map(
        ([word, at]) =>
          at && (
            <span key={word} className="breaks">
              {word} <Time at={at} />
            </span>
          ),
      )}
    </p>
  );
}
