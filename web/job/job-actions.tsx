import { type ComponentType, useState } from "react";
import { isFinished } from "../../src/core/states.js";
import type { JobWithInputJson, operations } from "../../src/http/client.js";
import { useMay } from "../session.js";
import { ApproveDialog, RejectDialog } from "./approval-dialogs.js";
import { CancelDialog } from "./cancel-dialog.js";
import { AWAITING_APPROVAL, type JobDialogProps } from "./job-dialog.js";
import { ReplayDialog } from "./replay-dialog.js";
import { RetryDialog } from "./retry-dialog.js";

interface Action {
  calls: keyof typeof operations;
  word: string;
  look?: "primary" | "danger";
  fits: (job: JobWithInputJson) => boolean;
  dialog: ComponentType<JobDialogProps>;
}

const awaitsApproval = (job: JobWithInputJson) => job.hold_reason === AWAITING_APPROVAL;

const actions: Action[] = [
  { calls: "approveJob", word: "Approve…", look: "primary", fits: awaitsApproval, dialog: ApproveDialog },
  { calls: "rejectJob", word: "Reject…", look: "danger", fits: awaitsApproval, dialog: RejectDialog },
  {
    calls: "retryJob",
    word: "Retry…",
    fits: ({ state }) => state === "FAILED_TERMINAL" || state === "CANCELLED",
    dialog: RetryDialog,
  },
  { calls: "replayJob", word: "Replay…", fits: () => true, dialog: ReplayDialog },
  {
    calls: "cancelJob",
    word: "Cancel…",
    look: "danger",
    fits: ({ state, cancel_requested_at }) => !isFinished(state) && cancel_requested_at === null,
    dialog: CancelDialog,
  },
];

/** What this person may do with this job now. */
export function JobActions({ job }: { job: JobWithInputJson }) {
  const may = useMay();
  const [open, setOpen] = useState<Action>();
  return (
    <>
      {actions
        .filter(({ calls, fits }) => may(calls) && fits(job))
        .map((action) => (
          <button
            key={action.word}
            type="button"
            className={action.look ? `button ${action.look}` : "button"}
            onClick={() => setOpen(action)}
          >
            {action.word}
          </button>
        ))}
      {open && <open.dialog job={job} onClose={() => setOpen(undefined)} />}
    </>
  );
}
