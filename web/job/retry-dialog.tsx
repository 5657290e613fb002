import { api } from "../api.js";
import { ActionDialog } from "../ui/dialog.js";
import { useAction } from "../ui/use-action.js";
import type { JobDialogProps } from "./job-dialog.js";

export function RetryDialog({ job, onClose }: JobDialogProps) {
  const action = useAction({
    act: () => api.retryJob({ params: { id: job.job_id } }),
    said: "Job put back in its queue",
    onDone: onClose,
  });
  return (
    <ActionDialog
      title="Retry this job"
      explains={`The job goes back to queue ${job.queue} with one more attempt. Its earlier attempts stay on record, remembered steps are not computed again, and the retry is written to the audit.`}
      verb="Retry the job"
      busy={action.isPending}
      error={action.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    />
  );
}
