import { api } from "../api.js";
import { ActionDialog } from "../ui/dialog.js";
import { useAction } from "../ui/use-action.js";
import type { JobDialogProps } from "./job-dialog.js";

export function CancelDialog({ job, onClose }: JobDialogProps) {
  const action = useAction({
    act: () => api.cancelJob({ params: { id: job.job_id } }),
    said: job.state === "RUNNING" ? "Asked the running attempt to stop" : "Job cancelled",
    onDone: onClose,
  });
  return (
    <ActionDialog
      title="Cancel this job"
      explains={
        job.state === "RUNNING"
          ? "The running attempt is told to stop. The job ends as cancelled when it does, or when its lease runs out. What it already did outside stays done."
          : "The job ends as cancelled at once and is not started. It can be retried later."
      }
      verb="Cancel the job"
      danger
      busy={action.isPending}
      error={action.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    />
  );
}
