import { LeaseLost, OracleError } from "../core/errors.js";
import type { JobDefinition } from "../handlers/define.js";
import { follow, leftOpen } from "../handlers/open-calls.js";
import type { Recorder } from "../handlers/recorder.js";
import type { Attempt } from "./attempt.js";
import { EffectLedger } from "./effect-ledger.js";
import { AttemptRecords, type Records } from "./records.js";
import { StepLedger } from "./step-ledger.js";

/** What one attempt remembers and does. The parts are made when a handler first asks for them: most never do. */
export class Ledger implements Recorder {
  /** Whether the job may have steps, effects or artifacts. */
  used: boolean;
  private calls: Set<Promise<unknown>> | undefined;
  private artifacts: Set<Promise<unknown>> | undefined;
  private closed = false;
  private records: AttemptRecords | undefined;
  private stepLedger: StepLedger | undefined;
  private effectLedger: EffectLedger | undefined;

  constructor(
    private readonly attempt: Attempt,
    private readonly definition: JobDefinition,
    private readonly shared: Records,
  ) {
    const { lease } = attempt;
    this.used = lease.attemptNo > 1 || lease.replayOf !== null;
  }

  get steps(): StepLedger {
    this.stepLedger ??= new StepLedger(this.open());
    return this.stepLedger;
  }

  get effects(): EffectLedger {
    this.effectLedger ??= new EffectLedger(this.open(), this.definition.approve);
    return this.effectLedger;
  }

  /** Why the job must wait for a person, and what is to commit with its result. */
  get hold(): EffectLedger["hold"] {
    return this.effectLedger?.hold;
  }

  get commits(): EffectLedger["commits"] {
    return this.effectLedger?.commits ?? [];
  }

  /** Takes a call, if the attempt has not ended. */
  track<T>(call: () => Promise<T>): Promise<T> {
    if (this.closed) return Promise.reject(leftOpen());
    this.calls ??= new Set();
    return follow(this.calls, call());
  }

  /** The same for an artifact, which may be left to itself: the attempt's end waits for it, and its hash counts. */
  keep<T>(call: () => Promise<T>): Promise<T> {
    this.used = true;
    const late = () => Promise.reject(new LeaseLost(this.attempt.lease.jobId, "its attempt has ended"));
    this.artifacts ??= new Set();
    return follow(this.artifacts, this.closed ? late() : call());
  }

  /** The handler has returned: throws what speaks against calling that a success. */
  async finish(): Promise<void> {
    const dangling = (this.calls?.size ?? 0) > 0;
    await this.quiet();
    if (dangling) throw leftOpen();
    const unfinished = this.effectLedger?.unfinished();
    if (unfinished) throw unfinished;
    if (this.hold) throw new OracleError("JOB_PRECONDITION", `The job is held: ${this.hold.reason}.`);
  }

  /** Takes no more calls and waits for those under way: how they end is worth knowing, whatever became of the handler. */
  async quiet(): Promise<void> {
    this.close();
    await Promise.allSettled([...(this.calls ?? []), ...(this.artifacts ?? [])]);
  }

  /** What a handler asks for after its end is refused. */
  close(): void {
    this.closed = true;
  }

  private open(): AttemptRecords {
    this.used = true;
    this.records ??= new AttemptRecords(this.attempt, this.shared);
    return this.records;
  }
}
