import { useState } from "react";
import { useMay } from "../session.js";
import { BulkDialog, type BulkVerb } from "./bulk-dialog.js";
import type { JobFilters } from "./filters.js";

/** Retry or cancel everything the filter finds; the dialog counts first. */
export function BulkActions({ filters }: { filters: JobFilters }) {
  const may = useMay();
  const [verb, setVerb] = useState<BulkVerb>();
  const { state, held } = filters;
  const retries = state === "FAILED_TERMINAL" || state === "CANCELLED";
  const cancels = held || state === "PENDING" || state === "RUNNING" || state === "FAILED_RETRYABLE";
  if (!may("retryJobs") || !may("cancelJobs")) return null;
  if (!state && !held)
    return <span className="muted small">Choose a state to retry or cancel all found.</span>;
  return (
    <div className="actions">
      {retries && (
        <button type="button" className="button" onClick={() => setVerb("retry")}>
          Retry all found…
        </button>
      )}
      {cancels && (
        <button type="button" className="button danger" onClick={() => setVerb("cancel")}>
          Cancel all found…
        </button>
      )}
      {verb && <BulkDialog verb={verb} filters={filters} onClose={() => setVerb(undefined)} />}
    </div>
  );
}
