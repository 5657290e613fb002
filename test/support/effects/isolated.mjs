import { setTimeout as sleep } from "node:timers/promises";
import { defineJob } from "oracle-worker";
import { z } from "zod";

/** The same handler in a thread and in a process: what a child may ask of its worker. */
async function run({ input, step, effect, plan, onCommit, artifact, job }) {
  if (input.how === "leaves a step open") {
    void step("slow", () => sleep(500));
    return "gone";
  }
  if (input.how === "names an artifact 5") return artifact(5, "hello");
  if (input.how === "keeps much") {
    const text = 'é😀"\\'.repeat(input.times);
    const { size } = await artifact("large.txt", text);
    const bytes = await artifact("large.bin", Buffer.from(text));
    const remembered = await step("large", () => text);
    return { size, bytes: bytes.size, same: remembered === text };
  }
  const drawn = await step("draw", () => ({ attempt: job.attemptNo }));
  const mail = { key: "mail", kind: input.kind ?? "idempotent", request: { to: "ada" } };
  if (input.how === "plans") await plan([mail]);
  if (input.how === "plans nothing") await plan(null);
  const sent = await effect(mail, ({ idempotencyKey }) => {
    if (input.how === "dies" && job.attemptNo === 1) process.kill(process.pid, "SIGKILL");
    return { idempotencyKey, attempt: job.attemptNo };
  });
  if (input.how === "commits") onCommit("note", "INSERT INTO public.notes VALUES ($1)", [job.type]);
  if (input.how === "commits twice") for (const sql of ["SELECT 1", "SELECT 2"]) onCommit("note", sql);
  if (input.how === "fails once" && job.attemptNo === 1) throw new Error("once more");
  return { drawn, sent };
}

const shape = {
  input: z.any(),
  output: z.any(),
  backoff: { kind: "fixed", baseSeconds: 0.02 },
  run,
};
export const inline = defineJob({ ...shape, type: "inline" });
export const thread = defineJob({ ...shape, type: "thread", isolation: "thread" });
export const child = defineJob({ ...shape, type: "process", isolation: "process", warm: 1 });
export const threadPlan = defineJob({
  ...shape,
  type: "thread plan",
  isolation: "thread",
  approve: "person",
});
export const childPlan = defineJob({
  ...shape,
  type: "process plan",
  isolation: "process",
  approve: "person",
});
