import { OracleError } from "../core/errors.js";
import type { JobContext } from "../handlers/define.js";
import { runEffect, runStep, toEffectRequests } from "../handlers/effects.js";
import type { ProcessGroups } from "../handlers/process/group.js";
import { Snooze } from "../handlers/snooze.js";
import type { Database } from "../store/database.js";
import type { OwnStatement } from "../store/evolution-record.js";
import type { Attempt } from "./attempt.js";
import type { Ledger } from "./ledger.js";
import type { Records } from "./records.js";

/** What an attempt may reach of the worker around it. */
export interface AttemptServices
  extends Pick<JobContext<unknown>, "log" | "progress" | "usage" | "artifact"> {
  records: Records;
  groups: ProcessGroups | undefined;
}

/** What job types of this package reach besides what every handler is promised. */
export interface Inside {
  db: Database;
  /** Who is told of the process groups they open. */
  groups: ProcessGroups | undefined;
  /** Has a statement of the store commit together with the result. */
  commit(name: string, statement: OwnStatement): void;
}

/** Only of a handler that runs in its worker's own process. */
export function insideOf(context: JobContext<unknown>): Inside {
  if ("inside" in context) return (context as unknown as AttemptContext).inside;
  throw new OracleError(
    "HANDLERS_INVALID",
    `Job type ${context.job.type} runs in its worker's process only.`,
  );
}

/**
 * What a handler in this process is given. Each part is made when it is asked for: most handlers use few, and a
 * dozen closures per job would be the dearest thing about a short one. Parts can be taken out and called alone.
 */
export class AttemptContext implements JobContext<unknown> {
  input: unknown;

  constructor(
    private readonly attempt: Attempt,
    private readonly services: AttemptServices,
    private readonly ledger: Ledger,
  ) {
    this.input = attempt.lease.input;
  }

  get job(): JobContext<unknown>["job"] {
    const { lease } = this.attempt;
    return {
      id: lease.jobId,
      type: lease.type,
      tenantId: lease.tenantId,
      queue: lease.queue,
      idempotencyKey: lease.idempotencyKey,
      attemptId: lease.attemptId,
      attemptNo: lease.attemptNo,
      deadline: lease.deadline,
    };
  }

  get signal(): AbortSignal {
    return this.attempt.signal;
  }

  get log(): JobContext<unknown>["log"] {
    return this.services.log;
  }

  get progress(): JobContext<unknown>["progress"] {
    return this.services.progress;
  }

  get usage(): JobContext<unknown>["usage"] {
    return this.services.usage;
  }

  get artifact(): JobContext<unknown>["artifact"] {
    return (...given) => this.ledger.keep(() => this.services.artifact(...given));
  }

  get step(): JobContext<unknown>["step"] {
    const { ledger } = this;
    return (name, fn) => ledger.track(() => runStep(ledger.steps, name, fn));
  }

  get effect(): JobContext<unknown>["effect"] {
    const { ledger } = this;
    return (options, fn) => ledger.track(() => runEffect(ledger.effects, options, fn, () => this.signal));
  }

  get plan(): JobContext<unknown>["plan"] {
    return (effects) => this.ledger.track(() => this.ledger.effects.plan(toEffectRequests(effects)));
  }

  get onCommit(): JobContext<unknown>["onCommit"] {
    return (name, sql, values = []) => this.ledger.effects.onCommit(name, sql, values);
  }

  /** For `insideOf`. */
  get inside(): Inside {
    const { services, ledger } = this;
    return {
      db: services.records.db,
      groups: services.groups,
      commit: (name, { sql, values }) => ledger.effects.onCommit(name, sql, values, true),
    };
  }

  snooze(seconds: number): never {
    throw new Snooze(seconds);
  }
}
