import type { WorkerEventListener } from "../core/events.js";
import type { Lease, Outcome } from "../core/job.js";
import type { JsonLimits } from "../core/json.js";
import { defaultBackoff, retryDelaySeconds } from "../core/retry.js";
import type { JobState } from "../core/states.js";
import type { JobDefinition } from "../handlers/define.js";
import type { Registry } from "../handlers/registry.js";
import type { Runners } from "../handlers/runners.js";
import type { Claim } from "../store/claim.js";
import { Attempt, type StopReason } from "./attempt.js";
import type { AttemptServices } from "./context.js";
import { execute, fail } from "./execute.js";
import type { LeaseKeeper } from "./lease-keeper.js";
import type { Reporter } from "./reporter.js";
import type { Ended, Settler } from "./settler.js";

/** Told what a supervisor must know when this process dies: which jobs run, and which process groups handlers have. */
export interface Journal {
  started(jobIds: string[]): void;
  ended(jobId: string): void;
  groupOpened(pid: number): void;
  groupClosed(pid: number): void;
}

export interface SlotOptions {
  workerId: string;
  concurrency: number;
  limits: JsonLimits;
  runners: Runners;
  services: (lease: Lease) => AttemptServices;
  reporter: Reporter;
  emit: WorkerEventListener;
  journal?: Journal | undefined;
}

interface SlotEvents {
  /** A slot is free and nothing is waiting for it. */
  onRoom(): void;
  /** Every outcome so far is written. */
  onSettled(): void;
  /** A job that counted against a cap has ended. */
  onSlotFreed(): void;
  /** A job of a type that this worker does not serve. */
  onUnknownType(lease: Lease): Promise<Outcome>;
}

/** A lease, the claim it came with, and its slot with the keeper. */
interface Claimed {
  lease: Lease;
  claimId: string;
  slot: number;
}

/** Short jobs are claimed ahead, up to this much work, so that slots never wait for the database; by slots, within bounds. */
const PREFETCH_MS = 50;
const PREFETCH_LEAST = 2000;
const PREFETCH_MOST = 6000;
/** Jobs of one claim: enough to share its cost, few enough to come while the last ones still run. */
const CLAIM_MOST = 1500;
/** Outcomes that may wait to be written before no more jobs are taken. */
const UNSETTLED_MOST = 4000;
/** How long a handler that was told to stop may take before its slot is given to somebody else. */
export const STOP_GRACE_MS = 5_000;
const DEFAULT_TIMEOUT_SECONDS = 3600;
/** How long jobs may start each other before the event loop turns. */
const TURN_MS = 20;

/** The jobs of one worker: those that run, and those claimed a moment ahead. */
export class Slots {
  private readonly running = new Map<string, Attempt>();
  private waiting: Claimed[] = [];
  /** Attempts that have ended and whose last words are being written. */
  private reporting = 0;
  private averageMs = 1000;
  private startDue = false;
  private turnedAt = 0;
  private closed = false;

  constructor(
    private readonly registry: Registry,
    private readonly settler: Settler,
    private readonly keeper: LeaseKeeper,
    private readonly options: SlotOptions,
    private readonly events: SlotEvents,
  ) {}

  get runningCount(): number {
    return this.running.size;
  }

  get quiet(): boolean {
    return this.running.size === 0 && this.waiting.length === 0 && this.unsettled === 0;
  }

  get runningJobIds(): string[] {
    return [...this.running.values()].map(({ lease }) => lease.jobId);
  }

  private get unsettled(): number {
    return this.reporting + this.settler.pending;
  }

  /** Free slots that nothing waits for. */
  get free(): number {
    return this.closed ? 0 : Math.max(0, this.options.concurrency - this.running.size - this.waiting.length);
  }

  /** How many jobs to ask for: free slots, and ahead of them as many as short jobs will use up at once. */
  room(): number {
    const { concurrency } = this.options;
    if (this.closed || this.unsettled > UNSETTLED_MOST) return 0;
    const ahead = Math.min(
      Math.max(PREFETCH_LEAST, Math.min(PREFETCH_MOST, 6 * concurrency)),
      Math.floor((concurrency * PREFETCH_MS) / Math.max(0.05, this.averageMs)),
    );
    // Those that have a free slot are as good as started.
    const admitted = this.running.size + this.waiting.length;
    const waiting = Math.max(0, admitted - concurrency);
    // While enough is still waiting, a bigger claim a little later is cheaper than a small one now.
    if (waiting > ahead - Math.min(ahead / 2, CLAIM_MOST)) return 0;
    return Math.min(CLAIM_MOST, concurrency + ahead - admitted);
  }

  admit({ claimId, leases }: Claim): void {
    if (leases.length === 0) return;
    this.settler.track(claimId, leases.length);
    leases.sort(inOrder);
    const slots = this.keeper.take(leases);
    this.options.emit({ event: "jobs.claimed", workerId: this.options.workerId, leases });
    leases.forEach((lease, index) => {
      this.waiting.push({ lease, claimId, slot: slots[index] as number });
    });
    // Not at once: the next claim is sent first, and made while these run.
    if (this.closed) this.handBackWaiting();
    else setImmediate(() => this.closed || this.startWaiting());
  }

  /** No more jobs; those that have not started go back. Returns how many. */
  close(): number {
    this.closed = true;
    const count = this.waiting.length;
    this.handBackWaiting();
    return count;
  }

  stop(attemptId: string, reason: StopReason): Lease | undefined {
    // One that has not started holds nothing that could be stopped; it just must not start any more.
    const unstarted = this.waiting.findIndex(({ lease }) => lease.attemptId === attemptId);
    for (const { slot } of unstarted < 0 ? [] : this.waiting.splice(unstarted, 1)) this.keeper.drop(slot);
    const attempt = this.running.get(attemptId);
    attempt?.stop(reason);
    return attempt?.lease;
  }

  /** Its attempt was ended by the renewal thread; whatever the handler still brings is nobody's. */
  forget(attemptId: string): void {
    const attempt = this.running.get(attemptId);
    if (!attempt) return;
    attempt.stop("timeout");
    this.running.delete(attemptId);
    this.keeper.drop(attempt.slot);
    this.options.journal?.ended(attempt.lease.jobId);
  }

  stopAll(reason: StopReason): void {
    for (const attempt of this.running.values()) attempt.stop(reason);
  }

  /** Ends attempts that ran too long, and gives up on handlers that do not end when told. */
  watch(): void {
    const now = performance.now();
    for (const attempt of this.running.values()) {
      const { lease, stopReason, stoppedAt } = attempt;
      if (now >= attempt.endsAt && !stopReason) {
        attempt.stop(attempt.endsByDeadline ? "deadline" : "timeout");
      }
      // In a shutdown a handler that does not end leaves its job to whoever kills this process: handing it
      // back while it still runs would let two run at once.
      if (stoppedAt !== undefined && now - stoppedAt > STOP_GRACE_MS && stopReason !== "shutdown") {
        this.finish(attempt, fail(attempt, this.registry.find(lease.type) as JobDefinition, undefined));
      }
    }
  }

  private startWaiting(): void {
    const free = Math.max(0, this.options.concurrency - this.running.size);
    const starting = this.waiting.slice(0, free);
    if (starting.length === 0) return;
    this.options.journal?.started(starting.map(({ lease }) => lease.jobId));
    // One by one: a handler that ends at once gives its slot back, and its time is not the next one's.
    for (let left = starting.length; left > 0; left--) {
      const next = this.waiting.shift();
      if (next) this.start(next);
    }
  }

  private start({ lease, claimId, slot }: Claimed): void {
    const attempt = new Attempt(lease, claimId, slot, this.timeoutOf(lease) * 1000);
    this.running.set(lease.attemptId, attempt);
    attempt.onClock = this.announce;
    this.announce(attempt);
    this.run(attempt);
  }

  /** Tells the renewal thread what to do if the event loop cannot end this attempt in time. */
  private readonly announce = ({ lease, slot, endsAt, endsByDeadline }: Attempt): void => {
    // The slot of one that was given up on may be another's already.
    if (!this.running.has(lease.attemptId)) return;
    const backoff = this.registry.find(lease.type)?.backoff ?? defaultBackoff;
    const delay = endsByDeadline
      ? undefined
      : retryDelaySeconds(backoff, lease.attemptNo - lease.interruptions);
    this.keeper.started(slot, endsAt, delay);
  };

  private run(attempt: Attempt): void {
    const { lease } = attempt;
    const { workerId, emit, runners, services, limits } = this.options;
    const definition = this.registry.find(lease.type);
    emit({ event: "job.started", workerId, lease });
    const ended = definition
      ? execute(attempt, definition, runners.choose(definition, lease), services(lease), limits)
      : this.events.onUnknownType(lease);
    if (ended instanceof Promise) void ended.then((outcome) => this.finish(attempt, outcome));
    else this.finish(attempt, ended);
  }

  /** The handler has ended, or was given up on: the slot is free, the outcome goes to the settler. */
  private finish(attempt: Attempt, outcome: Outcome): void {
    const { lease } = attempt;
    // An attempt that was given up on is finished already; what its handler brings later is nobody's.
    if (!this.running.delete(lease.attemptId)) return;
    this.keeper.ended(attempt.slot);
    const ms = performance.now() - attempt.startedAt;
    this.averageMs += (ms - this.averageMs) * 0.05;
    this.options.journal?.ended(lease.jobId);
    this.settleReported(attempt, outcome, ms / 1000);
    if (!this.startDue) void this.startSoon();
  }

  /** What ends in one turn of the loop makes room together, so that others start and are asked for together. */
  private async startSoon(): Promise<void> {
    this.startDue = true;
    // Handlers that answer at once would keep the loop from turning, and outcomes and signals with it.
    if (performance.now() - this.turnedAt > TURN_MS) {
      await new Promise(setImmediate);
      this.turnedAt = performance.now();
    } else await null;
    this.startDue = false;
    if (this.closed) return;
    this.startWaiting();
    if (this.room() > 0) this.events.onRoom();
  }

  /** What the attempt has said is written first: its outcome closes the fence. Most have said nothing. */
  private settleReported(attempt: Attempt, outcome: Outcome, seconds: number): void {
    const written = this.options.reporter.finish(attempt.lease.attemptId);
    if (written) {
      this.reporting++;
      void written.then(() => {
        this.reporting--;
        this.settle(attempt, outcome, seconds);
      });
    } else this.settle(attempt, outcome, seconds);
  }

  private settle({ lease, claimId, slot }: Claimed, outcome: Outcome, seconds: number): void {
    this.settler.add({ lease, claimId, slot, outcome, seconds, onWritten: this.onWritten });
  }

  private readonly onWritten: Ended["onWritten"] = ({ lease, slot, outcome, seconds }, state) => {
    const { workerId, emit } = this.options;
    this.keeper.drop(slot);
    if (state) emit({ event: "job.settled", workerId, lease, outcome, state: state as JobState, seconds });
    else emit({ event: "lease.lost", workerId, lease, why: "its outcome came too late" });
    if (lease.holdsSlot) this.events.onSlotFreed();
    if (this.unsettled === 0) this.events.onSettled();
  };

  private handBackWaiting(): void {
    const unstarted = this.waiting;
    this.waiting = [];
    for (const one of unstarted)
      this.settle(one, { kind: "released", cause: "SHUTDOWN", delaySeconds: 0 }, 0);
  }

  private timeoutOf(lease: Lease): number {
    return lease.timeoutSeconds ?? this.registry.find(lease.type)?.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS;
  }
}

/** Higher priority first, then age, then id. */
function inOrder(a: Lease, b: Lease): number {
  return b.priority - a.priority || a.readySince - b.readySince || (a.jobId < b.jobId ? -1 : 1);
}
