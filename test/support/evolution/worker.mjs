// A worker for evolution without a supervisor, for tests that kill it.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, createWorker } from "oracle-worker";
import { defineEvolution } from "oracle-worker/evolution";

const { DATABASE_URL, ARTIFACTS, WORKSPACE, REMOTE, DEATHS } = process.env;
const script = (name) => ["/bin/sh", fileURLToPath(new URL(name, import.meta.url)), DEATHS];

/** Once for each death that is planned: the folder that says so outlives the process. */
function die(jobId, point) {
  if (!existsSync(join(DEATHS, "planned", `${jobId}.${point}`))) return;
  try {
    mkdirSync(join(DEATHS, "done", `${jobId}.${point}`));
  } catch {
    return;
  }
  process.kill(process.pid, "SIGKILL");
}

const evolve = defineEvolution({
  workspace: WORKSPACE,
  push: REMOTE,
  backoff: { kind: "fixed", baseSeconds: 0.05 },
  planner({ spec }, { worktree }) {
    die(worktree.split("/").at(-1).split(".")[0], "plan");
    return { summary: `${spec.goal} by two files` };
  },
  coder: { agent: script("agent.sh") },
  evaluator: { command: script("evaluator.sh") },
});

const oracle = await connect({ databaseUrl: DATABASE_URL, artifacts: ARTIFACTS });
const worker = await createWorker(oracle, {
  jobs: [evolve],
  concurrency: 1,
  leaseSeconds: 2,
  pollSeconds: 0.2,
  onEvent: (event) => event.event === "job.settled" && die(event.lease.jobId, "settled"),
});
process.once("SIGTERM", async () => {
  await worker.stop();
  await oracle.close();
});
