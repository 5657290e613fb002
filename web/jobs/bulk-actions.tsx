import { useState } from "react";
import { useMay } from "../session.js";
import { BulkDialog, type BulkVerb } from "./bulk-dialog.js";
import type { JobFilters } from "./filters.js";

/** Retry or cancel everything the filter finds; the dialog counts first. */
export function BulkActions({ filters }: { filters: JobFilters }) {
  const may = useMay();
  const [verb, setVerb] = useState<BulkVerb>();
  const { state = "ANY", held } = filters;
  const retries = may("retryJobs") && !held && ["ANY", "FAILED_TERMINAL", "CANCELLED"].includes(state);
  const cancels = may("cancelJobs") && ["ANY", "PENDING", "RUNNING", "FAILED_RETRYABLE"].includes(state);
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
