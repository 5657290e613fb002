import type { JobJson } from "../../src/http/client.js";
import { Badge } from "../ui/state.js";
import { AWAITING_APPROVAL } from "./job-dialog.js";

/** Why the job does not go on by itself, and what lets it. */
export function HoldNotice({ job }: { job: JobJson }) {
  if (job.cancel_requested_at && job.state === "RUNNING") {
    return (
      <p className="notice tone-calm">
        <Badge tone="calm" icon="slash" word="Cancelling" />
        The running attempt was told to stop.
      </p>
    );
  }
  if (!job.hold_reason) return null;
  return (
    <div className="notice tone-warn">
      <span className="row">
        <Badge tone="warn" icon="held" word={`Held: ${job.hold_reason}`} />
        {job.hold_reason === AWAITING_APPROVAL
          ? "It has made a plan and waits until a person approves or rejects it."
          : "It waits for a person: see its effects."}
      </span>
    </div>
  );
}
