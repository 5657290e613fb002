import type { Effect, Step } from "../core/effect.js";
import type { Attempt, Job, Result } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import { effectTable, stepTable } from "./effect-text.js";
import { progressText } from "./report-text.js";
import { paint, prettyJson, printable, stateColour, titled } from "./style.js";
import { facts, table } from "./table.js";
import { relative, span } from "./time.js";

/** `Job 0198… SUCCEEDED`, the line that opens whatever is said of a job. */
export function jobLine(job: Job): string {
  return `Job ${job.jobId} ${paint(job.state, stateColour(job.state))}`;
}

export function jobTable(jobs: readonly Job[]): string {
  return table(jobs, [
    { title: "JOB", value: (job) => job.jobId },
    { title: "STATE", value: (job) => job.state, colour: (job) => stateColour(job.state) },
    { title: "TYPE", value: (job) => job.type },
    { title: "QUEUE", value: (job) => job.queue },
    { title: "TENANT", value: (job) => job.tenantId },
    { title: "TRIES", value: tries, align: "right" },
    { title: "CREATED", value: (job) => relative(job.createdAt) },
    { title: "ENDED", value: (job) => ago(job.completedAt) },
  ]);
}

/** A job's row, its input and its attempts, as a block. */
export function jobBlock(
  job: Job & { input: JsonValue },
  parts: { attempts: Attempt[]; steps: Step[]; effects: Effect[]; result: Result | undefined },
): string {
  const { error } = job;
  const { attempts, steps, effects, result } = parts;
  const lines = [
    jobLine(job),
    facts([
      ["type", job.type],
      ["queue", job.queue],
      ["tenant", job.tenantId],
      ["priority", job.priority],
      ["key", job.idempotencyKey === job.jobId ? null : job.idempotencyKey],
      ["tries", tries(job)],
      ["timeout", job.timeoutSeconds === null ? null : span(job.timeoutSeconds)],
      ["created", relative(job.createdAt)],
      [
        "runs after",
        job.startedAt === null || job.state === "FAILED_RETRYABLE" ? relative(job.runAfter) : null,
      ],
      ["deadline", ago(job.deadline)],
      ["started", ago(job.startedAt)],
      ["ended", ago(job.completedAt)],
      ["lease ends", ago(job.leaseExpiresAt)],
      ["cancel asked", job.state === "CANCELLED" ? null : ago(job.cancelRequestedAt)],
      ["held", job.holdReason],
      ["replay of", job.replayOf],
      ["handler", job.handlerVersion],
      ["spec hash", job.specHash],
      ["result hash", result?.contentHash ?? null],
      ["provenance", result?.provenanceHash ?? null],
      ["error", error && job.state !== "SUCCEEDED" ? `${error.code}: ${error.message}` : null],
    ]),
    titled("Input", prettyJson(job.input)),
  ];
  if (attempts.length > 0) lines.push(titled("Attempts", attemptTable(attempts)));
  if (steps.length > 0) lines.push(titled("Steps", stepTable(steps)));
  if (effects.length > 0) lines.push(titled("Effects", effectTable(effects)));
  return lines.join("\n");
}

function attemptTable(attempts: readonly Attempt[]): string {
  return table(attempts, [
    { title: "NO", value: (attempt) => attempt.attemptNo, align: "right" },
    { title: "STATUS", value: ({ status }) => status, colour: ({ status }) => stateColour(status) },
    { title: "STARTED", value: ({ startedAt }) => relative(startedAt) },
    { title: "TOOK", value: took },
    { title: "WORKER", value: ({ workerId }) => workerId },
    { title: "HANDLER", value: ({ handlerVersion }) => handlerVersion },
    { title: "PROGRESS", value: ({ progress }) => progress && progressText(progress) },
    { title: "CAUSE", value: ({ cause }) => cause },
    { title: "ERROR", value: ({ error }) => error && `${error.code}: ${error.message}` },
  ]);
}

/** How an attempt ended, on one line. */
export function attemptLine(attempt: Attempt): string {
  const { attemptNo, status, workerId, cause, error } = attempt;
  const painted = paint(status, stateColour(status));
  if (status === "RUNNING") return `attempt ${attemptNo} ${painted} on ${printable(workerId)}`;
  const why = [cause, error && `${error.code}: ${error.message}`].filter((part) => part !== null);
  return [`attempt ${attemptNo} ${painted} after ${took(attempt)}`, ...why.map(printable)].join(", ");
}

function took({ startedAt, endedAt }: Attempt): string | null {
  return endedAt && span((endedAt.getTime() - startedAt.getTime()) / 1000);
}

/** Interruptions cost no attempt. */
function tries(job: Job): string {
  return `${job.attemptCount - job.interruptions}/${job.maxAttempts}`;
}

function ago(moment: Date | null): string | null {
  return moment && relative(moment);
}
