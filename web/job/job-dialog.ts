import type { JobWithInputJson } from "../../src/http/client.js";

/** What every dialog about a job is given. */
export interface JobDialogProps {
  job: JobWithInputJson;
  onClose: () => void;
}

/** The `hold_reason` of a job that has made its plan. */
export const AWAITING_APPROVAL = "awaiting approval";
