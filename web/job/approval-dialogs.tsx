import { useState } from "react";
import { api } from "../api.js";
import { ActionDialog } from "../ui/dialog.js";
import { countWords } from "../ui/numbers.js";
import { useAction } from "../ui/use-action.js";
import type { JobDialogProps } from "./job-dialog.js";
import { useJobEffects } from "./use-job.js";

export function ApproveDialog({ job, onClose }: JobDialogProps) {
  const { data: effects = [] } = useJobEffects(job);
  const planned = effects.filter(({ state }) => state === "PLANNED");
  const action = useAction({
    act: () => api.approveJob({ params: { id: job.job_id } }),
    said: "Plan approved: the job goes on",
    onDone: onClose,
  });
  return (
    <ActionDialog
      title="Approve this plan"
      explains={`The job goes on and carries out ${countWords({ count: planned.length, more: false }, "planned effect")}, exactly as recorded. This cannot be taken back.`}
      verb="Approve the plan"
      busy={action.isPending}
      error={action.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    >
      <ul className="plain-list">
        {planned.map(({ effect_id, name, kind }) => (
          <li key={effect_id} className="breaks">
            {name} <span className="muted">({kind})</span>
          </li>
        ))}
      </ul>
    </ActionDialog>
  );
}

export function RejectDialog({ job, onClose }: JobDialogProps) {
  const [why, setWhy] = useState("");
  const action = useAction({
    act: () => api.rejectJob({ params: { id: job.job_id }, body: { why: why.trim() } }),
    said: "Plan rejected: the job has failed",
    onDone: onClose,
  });
  return (
    <ActionDialog
      title="Reject this plan"
      explains="The job ends as failed, and none of its planned effects is carried out. Your reason is kept with it."
      verb="Reject the plan"
      danger
      disabled={why.trim() === ""}
      busy={action.isPending}
      error={action.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    >
      <label className="field">
        <span>Why</span>
        <input
          className="input"
          maxLength={2000}
          required
          value={why}
          onChange={(event) => setWhy(event.target.value)}
        />
      </label>
    </ActionDialog>
  );
}
