import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { defineJob } from "oracle-worker";
import { z } from "zod";

const kinds = ["idempotent", "reconcilable", "unsafe"];

/** True once for each death of a job: the file that says so outlives the process. */
function isFirst(folder, death) {
  try {
    closeSync(openSync(join(folder, death), "wx"));
    return true;
  } catch {
    return false;
  }
}

async function post(url, path, body) {
  const response = await fetch(`${url}${path}`, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response.json();
}

/** Thinks, then makes one effect of each kind, and dies once at each place that its input names. */
export const order = defineJob({
  type: "order",
  input: z.any(),
  output: z.any(),
  backoff: { kind: "fixed", baseSeconds: 0.05 },
  async run({ input, step, effect, job }) {
    const { url, deaths, kills } = input;
    const meets = (kind, point) =>
      kills.some((kill) => kill.kind === kind && kill.point === point) &&
      isFirst(deaths, `${kind} ${point} ${input.n}`);
    const die = (kind, point) => {
      if (meets(kind, point)) process.kill(process.pid, "SIGKILL");
    };
    const { words } = await step("think", () => post(url, "/think", { jobId: job.id }));
    const responses = {};
    for (const kind of kinds) {
      die(kind, "intent");
      const request = { order: input.n, words };
      responses[kind] = await effect(
        {
          key: `send ${kind}`,
          kind,
          request,
          lookup: ({ idempotencyKey: key }) => post(url, "/lookup", { key }),
        },
        async ({ idempotencyKey: key, request: body }) => {
          die(kind, "before");
          const fatal = ["received", "performed"].find((point) => meets(kind, point));
          const response = await post(url, "/send", { key, kind, body, pid: process.pid, kill: fatal });
          die(kind, "after");
          return response;
        },
      );
      die(kind, "recorded");
    }
    return responses;
  },
});
