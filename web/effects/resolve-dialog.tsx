import { useState } from "react";
import type { EffectJson, RequestOf } from "../../src/http/client.js";
import { api } from "../api.js";
import { ActionDialog } from "../ui/dialog.js";
import { useAction } from "../ui/use-action.js";

type Resolution = RequestOf<"resolveEffect">["body"];
type Outcome = Resolution["outcome"];

const outcomes: [Outcome, word: string, does: string][] = [
  ["confirmed", "It happened", "the effect counts as done, and the job goes on without sending it again"],
  ["failed", "It did not happen", "the effect counts as failed, and the job with it"],
  ["retry", "It did not happen: send it again", "the effect is sent once more when the job runs"],
];

export function ResolveDialog({ effect, onClose }: { effect: EffectJson; onClose: () => void }) {
  const [outcome, setOutcome] = useState<Outcome>("confirmed");
  const [evidence, setEvidence] = useState("");
  const [response, setResponse] = useState("");
  const action = useAction({
    act: async () =>
      api.resolveEffect({
        params: { id: effect.effect_id },
        body: {
          outcome,
          evidence: evidence.trim(),
          ...(outcome === "confirmed" && response.trim() ? { response: JSON.parse(response) } : {}),
        },
      }),
    said: "Effect resolved",
    onDone: onClose,
  });
  return (
    <ActionDialog
      title={`Resolve ${effect.name}`}
      explains="Nobody knows whether this call went through: the attempt that sent it died before it heard back. Look at the other side, then say what you found. The job goes on once none of its effects is in doubt."
      verb="Resolve"
      disabled={evidence.trim() === ""}
      busy={action.isPending}
      error={action.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    >
      <Outcomes chosen={outcome} choose={setOutcome} />
      <label className="field">
        <span>How you know</span>
        <input
          className="input"
          maxLength={2000}
          required
          placeholder="such as a receipt number"
          value={evidence}
          onChange={(event) => setEvidence(event.target.value)}
        />
      </label>
      {outcome === "confirmed" && (
        <label className="field">
          <span>What the handler shall get as its response, as JSON (may be empty)</span>
          <textarea
            className="input"
            rows={3}
            spellCheck={false}
            value={response}
            onChange={(event) => setResponse(event.target.value)}
          />
        </label>
      )}
    </ActionDialog>
  );
}

function Outcomes({ chosen, choose }: { chosen: Outcome; choose: (outcome: Outcome) => void }) {
  return (
    <fieldset className="choices">
      <legend>What you found</legend>
      {outcomes.map(([value, word, does]) => (
        <label key={value}>
          <input
            type="radio"
            name="outcome"
            value={value}
            checked={chosen === value}
            onChange={() => choose(value)}
          />
          <span>
            {word}
            <span className="muted small">: {does}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
