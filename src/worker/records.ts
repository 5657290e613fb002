import { LeaseLost, type OracleError } from "../core/errors.js";
import type { Lease } from "../core/job.js";
import type { JsonLimits } from "../core/json.js";
import type { Database } from "../store/database.js";
import { begin, type Ending, end, type Intent, type Leave } from "../store/effects.js";
import { remember, type StepEntry } from "../store/steps.js";
import type { Attempt } from "./attempt.js";
import { GroupWriter } from "./group-writer.js";
import type { ArtifactKeeper } from "./keep-artifact.js";

/** Goes with each write, so that it is not tried for an attempt that has lost its job. */
type Lost = Pick<AttemptRecords, "lost">;

/** What all attempts of a worker share: writers that put steps and effects of many jobs into one commit. */
export class Records {
  readonly steps: GroupWriter<StepEntry & Lost, boolean>;
  readonly intents: GroupWriter<Intent & Lost, Leave | undefined>;
  readonly endings: GroupWriter<Ending & Lost, boolean>;

  constructor(
    readonly db: Database,
    readonly limits: JsonLimits,
    readonly artifacts: ArtifactKeeper,
  ) {
    this.steps = new GroupWriter((entries) => remember(db, entries));
    this.intents = new GroupWriter((entries) => begin(db, entries));
    this.endings = new GroupWriter((entries) => end(db, entries));
  }
}

/** One attempt's access to them. */
export class AttemptRecords {
  private place = 0;

  constructor(
    private readonly attempt: Attempt,
    readonly shared: Records,
  ) {}

  get lease(): Lease {
    return this.attempt.lease;
  }

  /** Numbers the handler's calls in the order in which it makes them. */
  nextPlace(): number {
    return ++this.place;
  }

  readonly lost = (): OracleError | undefined =>
    this.attempt.stopReason === "lease-lost"
      ? new LeaseLost(this.lease.jobId, "it ran out or was taken over")
      : undefined;
}
