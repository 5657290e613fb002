import { useState } from "react";
import type { RequestOf } from "../../src/http/client.js";
import { api } from "../api.js";
import { goTo } from "../router.js";
import { ActionDialog } from "../ui/dialog.js";
import { useAction } from "../ui/use-action.js";
import type { JobDialogProps } from "./job-dialog.js";
import { useSteps } from "./use-job.js";

type Replay = NonNullable<RequestOf<"replayJob">["body"]>;

export function ReplayDialog({ job, onClose }: JobDialogProps) {
  const original = JSON.stringify(job.input, null, 2);
  const [text, setText] = useState(original);
  const [fromStep, setFromStep] = useState("");
  const { data: steps = [] } = useSteps(job);
  const input = parse(text);
  const edited = text !== original;
  const body: Replay = {
    ...(edited && input.ok ? { input: input.value } : {}),
    ...(fromStep && !edited ? { from_step: fromStep } : {}),
  };
  const action = useAction({
    act: () => api.replayJob({ params: { id: job.job_id }, body }),
    said: "Replay submitted: this is the new job",
    onDone: (made) => {
      onClose();
      goTo(`/jobs/${made.job_id}`);
    },
  });
  return (
    <ActionDialog
      title="Replay this job"
      explains="Submits a new job of the same type to the same queue, with this input. The job you see stays as it is."
      verb={edited ? "Replay with edited input" : "Replay"}
      wide
      disabled={!input.ok}
      busy={action.isPending}
      error={input.ok ? action.error : input.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    >
      <label className="field">
        <span>Input, as JSON</span>
        <textarea
          className="input"
          rows={12}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      {steps.length > 0 && !edited && (
        <label className="field">
          <span>Start at step</span>
          <select className="input" value={fromStep} onChange={(event) => setFromStep(event.target.value)}>
            <option value="">the beginning: every step is computed anew</option>
            {steps.map(({ name }) => (
              <option key={name} value={name}>
                {name}: steps before it keep their values
              </option>
            ))}
          </select>
        </label>
      )}
    </ActionDialog>
  );
}

function parse(text: string): { ok: true; value: Replay["input"] } | { ok: false; error: Error } {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return { ok: false, error: error as Error };
  }
}
