import type { QueueJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { ActionDialog } from "../ui/dialog.js";
import { countWords } from "../ui/numbers.js";
import { useAction } from "../ui/use-action.js";

export function PauseDialog({ queue, onClose }: { queue: QueueJson; onClose: () => void }) {
  const params = { queue: queue.queue };
  const action = useAction({
    act: () => (queue.paused ? api.resumeQueue({ params }) : api.pauseQueue({ params })),
    said: queue.paused ? "Queue resumed" : "Queue paused",
    onDone: onClose,
  });
  const waiting = countWords(queue.ready, "job");
  return (
    <ActionDialog
      title={`${queue.paused ? "Resume" : "Pause"} queue ${queue.queue}`}
      explains={
        queue.paused
          ? `Workers start its jobs again; ${waiting} ready now.`
          : `No worker starts another job of it, of any tenant; ${waiting} ready now. Running jobs finish, and new ones may be submitted.`
      }
      verb={queue.paused ? "Resume the queue" : "Pause the queue"}
      busy={action.isPending}
      error={action.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    />
  );
}
