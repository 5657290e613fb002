import { LeaseLost, OracleError } from "../core/errors.js";
import { contentHash } from "../core/hash.js";
import { type JsonValue, toJsonText } from "../core/json.js";
import { checkName } from "../handlers/effects.js";
import type { StepRecorder } from "../handlers/recorder.js";
import { getSteps } from "../store/steps.js";
import type { AttemptRecords } from "./records.js";

/** The steps of one attempt: those that earlier ones left, and those it adds. */
export class StepLedger implements StepRecorder {
  /** Name to the place among the handler's calls. */
  private readonly names = new Map<string, number>();
  private earlier: Promise<Map<string, JsonValue>> | undefined;

  constructor(private readonly records: AttemptRecords) {}

  get used(): boolean {
    return this.names.size > 0;
  }

  async recall(name: string): Promise<{ value: JsonValue } | undefined> {
    checkName("step", name);
    if (this.names.has(name)) {
      throw new OracleError("STEP_REPEATED", `Step ${JSON.stringify(name)} was used before in this attempt.`);
    }
    this.names.set(name, this.records.nextPlace());
    const { attemptNo, replayOf } = this.records.lease;
    // A first attempt has nothing to remember, and does not ask.
    if (attemptNo === 1 && replayOf === null) return undefined;
    this.earlier ??= this.load();
    const earlier = await this.earlier;
    return earlier.has(name) ? { value: earlier.get(name) as JsonValue } : undefined;
  }

  async remember(name: string, value: unknown): Promise<JsonValue> {
    const { lease, shared } = this.records;
    const text = toJsonText(value, shared.limits, `step ${name}`);
    const kept = JSON.parse(text) as JsonValue;
    const valueHash = contentHash(kept);
    const seq = this.names.get(name) ?? 0;
    const entry = { lease, name, seq, value: text, valueHash, artifactId: null, lost: this.records.lost };
    const stored = await shared.steps.add(entry).catch((error: unknown) => {
      if ((error as { code?: string }).code !== "23505") throw error;
      return this.isStored(name, valueHash);
    });
    if (!stored) throw new LeaseLost(lease.jobId, "another attempt has taken over");
    return kept;
  }

  /** The name is taken: by this very write, if its first reply was lost. */
  private async isStored(name: string, valueHash: string): Promise<boolean> {
    const { lease, shared } = this.records;
    const steps = await getSteps(shared.db, lease.jobId);
    return steps.some(
      (step) => step.name === name && step.valueHash === valueHash && step.attemptNo === lease.attemptNo,
    );
  }

  private async load(): Promise<Map<string, JsonValue>> {
    const { lease, shared } = this.records;
    const steps = await getSteps(shared.db, lease.jobId);
    return new Map(steps.map(({ name, value }) => [name, value as JsonValue]));
  }
}
