import pino, { type Logger } from "pino";
import type { JobLog, WorkerEvent, WorkerEventListener } from "../core/events.js";
import type { Lease, Outcome } from "../core/job.js";
import { redactFields } from "../core/redact.js";

export type { Logger };

/** JSON lines for machines, short coloured lines on a terminal. Always on stderr: stdout is for results. */
export function createLogger(level: string): Logger {
  const terminal = process.stderr.isTTY === true;
  const stream = terminal
    ? { write: (line: string) => void process.stderr.write(pretty(line)) }
    : process.stderr;
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: {
        // The last place before a line is out: whatever was said, and by whom, secrets are hidden here.
        logMethod(args, method) {
          method.apply(this, args.map((arg) => redactFields(arg)) as Parameters<typeof method>);
        },
      },
    },
    stream,
  );
}

/** What handlers write through `log`, with the ids that find it again. */
export function jobLog(logger: Logger): (lease: Lease) => JobLog {
  return (lease) => {
    const ids = {
      job_id: lease.jobId,
      attempt_id: lease.attemptId,
      attempt_no: lease.attemptNo,
      tenant_id: lease.tenantId,
      type: lease.type,
    };
    const at = (level: "info" | "warn" | "error") => (message: string, fields?: Record<string, unknown>) =>
      logger[level]({ ...ids, ...fields }, message);
    return { info: at("info"), warn: at("warn"), error: at("error") };
  };
}

/** Writes a worker's events to its log, which names the worker: each job at debug, what went wrong louder. */
export function logEvents(logger: Logger): WorkerEventListener {
  return (event) => {
    const [level, message, fields] = describe(event);
    if (logger.isLevelEnabled(level)) logger[level]({ event: event.event, ...fields }, message);
  };
}

type Line = ["debug" | "info" | "warn" | "error", string, Record<string, unknown>];

function describe(event: WorkerEvent): Line {
  switch (event.event) {
    case "worker.started": {
      const { queues, jobTypes, concurrency } = event;
      const serves = `serves ${jobTypes.join(", ") || "no job type"}`;
      return ["info", `worker started, ${serves}`, { queues, concurrency }];
    }
    case "worker.draining":
      return ["info", `stopping, ${event.running} jobs running`, {}];
    case "worker.stopped":
      return ["info", "worker stopped", { handed_back: event.handedBack, abandoned: event.abandoned }];
    case "jobs.claimed":
      return ["debug", `${event.leases.length} jobs claimed`, {}];
    case "job.started":
      return ["debug", `${event.lease.type} started`, ids(event.lease)];
    case "job.settled":
      return describeOutcome(event.lease, event.outcome, event.state, event.seconds);
    case "job.ended":
      return [
        "warn",
        `${event.type} ended as ${event.state}`,
        { job_id: event.jobId, tenant_id: event.tenantId },
      ];
    case "lease.lost":
      return ["warn", `lease lost: ${event.why}`, ids(event.lease)];
    case "worker.blocked":
      return [
        "error",
        'the job blocked the event loop past its timeout; this worker takes no more: restart it, and give the type isolation "thread" or "process"',
        { job_id: event.jobId },
      ];
    case "worker.broken":
      return ["error", `the renewal thread died, this worker takes no more jobs: ${event.why}`, {}];
    case "database.trouble":
      return ["error", `database trouble during ${event.during}: ${messageOf(event.error)}`, {}];
    case "database.recovered":
      return ["info", `database is back (${event.during})`, {}];
    case "jobs.pruned":
      return ["info", `${event.jobs} finished jobs were older than RETENTION and are deleted`, {}];
    case "acquire.lost":
      return ["info", `Lease acquisition failed: the job ${event.why}`, { job_id: event.jobId }];
    case "dispatch.lost":
      return ["warn", `Redis is away, NOTIFY and polling take over: ${event.why}`, {}];
    case "dispatch.restored":
      return ["info", "Redis is back", {}];
    case "wakeup.lost":
      return ["warn", `wake-ups lost, polling goes on: ${event.why}`, {}];
    case "wakeup.restored":
      return ["info", "wake-ups are back", {}];
  }
}

function describeOutcome(lease: Lease, outcome: Outcome, state: string, seconds: number): Line {
  const fields = { ...ids(lease), state, seconds: Number(seconds.toFixed(3)) };
  if (outcome.kind === "retryable" || outcome.kind === "terminal") {
    const { code, message } = outcome.error;
    return ["warn", `${lease.type} failed: ${code}: ${message}`, fields];
  }
  return ["debug", `${lease.type} ${outcome.kind}`, fields];
}

function ids(lease: Lease): Record<string, unknown> {
  return {
    job_id: lease.jobId,
    attempt_id: lease.attemptId,
    attempt_no: lease.attemptNo,
    tenant_id: lease.tenantId,
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const GREY = "\x1b[90m";
const colours: Record<number, string> = { 20: GREY, 30: "\x1b[32m", 40: "\x1b[33m", 50: "\x1b[31m" };

function pretty(line: string): string {
  const { level, time, msg, pid: _pid, event: _event, worker_id: _worker, ...rest } = JSON.parse(line);
  const extras = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const paint = (colour: string, text: string) => (process.env.NO_COLOR ? text : `${colour}${text}\x1b[0m`);
  const when = paint(colours[level] ?? "", String(time).slice(11, 19));
  return `${when} ${msg}${extras.length > 0 ? ` ${paint(GREY, extras.join(" "))}` : ""}\n`;
}
