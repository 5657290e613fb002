import type { Effect, EffectRequest, EffectSpec } from "../core/effect.js";
import { EffectFailed, LeaseLost, OracleError, TerminalError } from "../core/errors.js";
import { contentHash } from "../core/hash.js";
import type { CommitStatement, HoldReason, StoredError } from "../core/job.js";
import { type JsonValue, toJsonText } from "../core/json.js";
import { toStoredError } from "../core/retry.js";
import { secretsIn } from "../core/secrets.js";
import type { JobDefinition } from "../handlers/define.js";
import { checkEffect, checkName, invalid } from "../handlers/effects.js";
import type { Begun, EffectEnding, EffectRecorder } from "../handlers/recorder.js";
import { type Intent, look } from "../store/effects.js";
import { plan } from "../store/plan.js";
import type { AttemptRecords } from "./records.js";

/**
 * How an effect stands in this attempt. `asked`: in doubt, and its lookup is being asked; `cleared`: the lookup found
 * that it had not happened, so it may be begun anew.
 */
type Standing = "beginning" | "sent" | "asked" | "cleared" | "over" | "in doubt";

/** The effects of one attempt. */
export class EffectLedger implements EffectRecorder {
  /** Why the job must wait for a person, whatever its handler makes of it. */
  hold: { reason: HoldReason; error?: StoredError } | undefined;
  readonly commits: CommitStatement[] = [];
  private readonly standing = new Map<string, Standing>();
  private plannedNames: Set<string> | undefined;
  private fault: OracleError | undefined;

  constructor(
    private readonly records: AttemptRecords,
    private readonly approve: JobDefinition["approve"],
  ) {}

  get used(): boolean {
    return this.standing.size > 0;
  }

  /** What speaks against calling the attempt a success. */
  unfinished(): OracleError | undefined {
    if (this.fault) return this.fault;
    const named = (...states: Standing[]) =>
      [...this.standing].filter(([, state]) => states.includes(state)).map(([name]) => JSON.stringify(name));
    const open = named("beginning", "sent", "asked", "cleared");
    if (open.length > 0) {
      const message = `The handler returned while ${open.join(", ")} was still under way: await every effect.`;
      return new OracleError("EFFECT_OPEN", message);
    }
    const doubtful = named("in doubt");
    if (doubtful.length === 0) return undefined;
    const message = `The handler returned although nobody knows whether ${doubtful.join(", ")} happened.`;
    return new OracleError("EFFECT_IN_DOUBT", message);
  }

  async begin(effect: EffectRequest): Promise<Begun> {
    const { name, kind, request } = checkEffect(effect);
    if (this.approve && !this.plannedNames?.has(name)) {
      const message = `Effect ${JSON.stringify(name)} is not in the plan; only what was planned and approved is sent.`;
      throw new OracleError("EFFECT_NOT_PLANNED", message);
    }
    this.claim(name);
    try {
      const text = toJsonText(request, this.records.shared.limits, `request of effect ${name}`);
      const intent = { name, kind, request: text, requestHash: contentHash(JSON.parse(text)) };
      const begun = await this.commitIntent(intent);
      this.standing.set(name, begun.next === "send" ? "sent" : begun.next === "look up" ? "asked" : "over");
      return begun;
    } catch (error) {
      this.standing.set(name, "over");
      throw error;
    }
  }

  async end(name: string, ending: EffectEnding): Promise<JsonValue> {
    const before = this.standing.get(name);
    if (before !== "sent" && before !== "asked") {
      throw new TerminalError(`effect ${name} has not begun; it cannot end.`);
    }
    if (ending.state === "UNKNOWN") {
      this.standing.set(name, "in doubt");
      throw this.holdFor(name, "its lookup cannot tell whether it happened");
    }
    if (ending.state !== "CONFIRMED") {
      await this.record(name, ending.state, null, this.stored(ending.error));
      this.standing.set(
        name,
        ending.state === "IN_DOUBT" ? "in doubt" : before === "asked" ? "cleared" : "over",
      );
      return null;
    }
    const response = await this.storable(name, ending.response);
    await this.record(name, "CONFIRMED", response, null);
    this.standing.set(name, "over");
    return JSON.parse(response) as JsonValue;
  }

  async plan(effects: EffectRequest[]): Promise<void> {
    if (!this.approve) throw new TerminalError("plan: the job type has no `approve`.");
    if (this.plannedNames) throw new TerminalError("plan: an attempt has one plan.");
    const { lease, shared } = this.records;
    const rows = effects.map((effect) => {
      const { name, kind, request } = checkEffect(effect);
      const text = toJsonText(request, shared.limits, `request of effect ${name}`);
      const seq = this.records.nextPlace();
      return { name, seq, kind, request: text, requestHash: contentHash(JSON.parse(text)) };
    });
    this.plannedNames = new Set(rows.map(({ name }) => name));
    if (this.plannedNames.size < rows.length) throw conflict("plan", "names an effect twice");
    if (rows.length === 0) return;
    const approved = this.approve !== "person" && (await this.approve(effects.map(toSpec))) === true;
    const found = await plan(shared.db, lease, rows, approved ? "policy" : null);
    if (found.length === 0) throw await this.whyNotOurs();
    for (const { name, state, resolved } of found) {
      if (state === "FAILED" && resolved) {
        throw new OracleError("PLAN_REJECTED", `Effect ${JSON.stringify(name)} was rejected by a person.`);
      }
    }
    const recorded = new Map(found.map((row) => [row.name, row]));
    const same =
      found.length === rows.length &&
      rows.every(({ name, requestHash }) => recorded.get(name)?.requestHash === requestHash);
    if (!same) throw conflict("plan", "is not the one that was recorded; make it from remembered steps");
    if (found.every((row) => row.approved)) return;
    this.hold = { reason: "awaiting approval" };
    throw new OracleError("JOB_PRECONDITION", "The plan awaits approval.", { jobId: lease.jobId });
  }

  /** A fault is thrown when the handler ends, not here: the call may come from another process, unheard. */
  onCommit(name: string, sql: string, values: JsonValue[], own = false): void {
    try {
      checkName("onCommit", name);
      if (typeof sql !== "string" || sql.trim() === "")
        throw invalid(`onCommit ${name}: no SQL given.`, "sql");
      // It would wait for rows that nobody sends.
      if (/^\s*copy\b/i.test(sql)) throw invalid(`onCommit ${name}: COPY cannot be used here.`, "sql");
      this.claim(name);
      this.standing.set(name, "over");
      const text = toJsonText(values, this.records.shared.limits, `values of onCommit ${name}`);
      this.commits.push({
        name,
        seq: this.records.nextPlace(),
        sql,
        values: JSON.parse(text) as JsonValue[],
        ...(own ? { own } : {}),
      });
    } catch (error) {
      this.fault ??= error as OracleError;
    }
  }

  /** A name is used once per attempt. */
  private claim(name: string): void {
    const before = this.standing.get(name);
    if (before !== undefined && before !== "cleared") {
      throw conflict(`effect ${JSON.stringify(name)}`, "was used before in this attempt");
    }
    this.standing.set(name, "beginning");
  }

  private async commitIntent(intent: Omit<Intent, "lease" | "seq">): Promise<Begun> {
    const { lease, shared, lost } = this.records;
    const entry = { ...intent, lease, lost, seq: this.records.nextPlace() };
    for (;;) {
      const askedAt = performance.now();
      const leave = await shared.intents.add(entry);
      // An answer that took longer than the lease had left may be followed by another attempt's call: ask again.
      if (leave && performance.now() - askedAt < leave.leaseLeftSeconds * 1000)
        return { next: "send", idempotencyKey: leave.idempotencyKey };
      if (leave) continue;
      const { effect } = await this.lookAt(intent.name);
      const begun = this.judge(effect, intent);
      if (begun) return begun;
    }
  }

  /** What follows from an effect that may not be sent now. */
  private judge(effect: Effect, intent: Pick<Intent, "name" | "kind" | "requestHash">): Begun | undefined {
    const { name } = intent;
    if (effect.requestHash !== intent.requestHash)
      throw conflict(`effect ${JSON.stringify(name)}`, "was recorded with another request");
    const { state, response, idempotencyKey } = effect;
    if (state === "CONFIRMED") return { next: "done", response };
    if (state === "FAILED" && effect.resolvedBy !== null) {
      throw new EffectFailed(`Effect ${JSON.stringify(name)} did not happen: ${effect.evidence}`, {
        retryable: false,
      });
    }
    if (state === "PLANNED" && effect.approvedAt === null) {
      throw new OracleError("EFFECT_NOT_PLANNED", `Effect ${JSON.stringify(name)} has not been approved.`);
    }
    if (state !== "IN_DOUBT" && state !== "DISPATCHED") return undefined;
    // The more careful of the kinds it was sent with and is named with now.
    if (effect.kind === "unsafe" || intent.kind === "unsafe") {
      throw this.holdFor(name, "nobody knows whether it happened, and it must not be sent twice");
    }
    if (intent.kind === "reconcilable") return { next: "look up", idempotencyKey };
    if (effect.kind === "reconcilable") {
      throw this.holdFor(name, "it was sent as reconcilable, and its lookup is gone");
    }
    return undefined;
  }

  private holdFor(name: string, why: string): OracleError {
    const error = new OracleError("EFFECT_IN_DOUBT", `Effect ${JSON.stringify(name)} is in doubt: ${why}.`, {
      jobId: this.records.lease.jobId,
    });
    this.hold = { reason: "effect in doubt", error: this.stored(error) };
    return error;
  }

  /** Errors are kept without what looks like a secret of the payload. */
  private stored(error: unknown): StoredError {
    return toStoredError(error, secretsIn(this.records.lease.input));
  }

  private async lookAt(name: string): Promise<{ effect: Effect }> {
    const { lease, shared } = this.records;
    const { ours, cancelled, effect } = await look(shared.db, lease, name);
    if (!ours) throw new LeaseLost(lease.jobId, "another attempt has taken over");
    if (cancelled) throw new OracleError("JOB_CANCELLED", "The job was cancelled.", { jobId: lease.jobId });
    if (!effect) throw new LeaseLost(lease.jobId, "it ran out");
    return { effect };
  }

  private async whyNotOurs(): Promise<unknown> {
    return this.lookAt("").catch((error: unknown) => error);
  }

  /** An effect whose response cannot be kept has happened all the same: that is for a person to sort out. */
  private async storable(name: string, response: unknown): Promise<string> {
    try {
      return toJsonText(response, this.records.shared.limits, `response of effect ${name}`);
    } catch (error) {
      await this.record(name, "IN_DOUBT", null, this.stored(error));
      this.standing.set(name, "in doubt");
      throw error;
    }
  }

  private async record(
    name: string,
    state: "CONFIRMED" | "FAILED" | "IN_DOUBT",
    response: string | null,
    error: StoredError | null,
  ): Promise<void> {
    const { lease, shared, lost } = this.records;
    const responseHash = response === null ? null : contentHash(JSON.parse(response));
    const entry = { lease, name, state, response, responseHash, error, lost };
    if (await shared.endings.add(entry)) return;
    // Recorded already, if the reply to a first try was lost.
    const { ours, effect } = await look(shared.db, lease, name);
    const isRecorded = effect?.state === state && effect.attemptNo === lease.attemptNo;
    if (!ours || !isRecorded) throw new LeaseLost(lease.jobId, "another attempt has taken over");
  }
}

function conflict(what: string, why: string): OracleError {
  return new OracleError("EFFECT_CONFLICT", `The ${what} ${why}.`);
}

function toSpec({ name, kind, request }: EffectRequest): EffectSpec {
  return { key: name, kind, request };
}
