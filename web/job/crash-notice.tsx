import type { JobJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { useMay } from "../session.js";
import { Icon } from "../ui/icons.js";
import { ErrorNotice } from "../ui/page.js";
import { useAction } from "../ui/use-action.js";

/** Only under `dev`: kills the worker process that runs this job. */
export function CrashNotice({ job }: { job: JobJson }) {
  const may = useMay();
  const crash = useAction({
    act: () => api.crashWorker(),
    said: "Worker process killed",
    onDone: () => {},
  });
  if (job.state !== "RUNNING" || !may("crashWorker")) return null;
  return (
    <div className="notice tone-calm">
      <span>
        Kills the process of worker {job.worker_id} with SIGKILL, and with it every job it runs. Another
        attempt takes over.
      </span>
      <button
        type="button"
        className="button danger"
        disabled={crash.isPending}
        onClick={() => crash.mutate()}
      >
        <Icon name="bolt" />
        Kill its worker
      </button>
      {crash.error && <ErrorNotice error={crash.error} />}
    </div>
  );
}
