import type { Step } from "../core/effect.js";
import { LeaseLost, OracleError } from "../core/errors.js";
import { contentHash } from "../core/hash.js";
import { type JsonValue, toJsonText } from "../core/json.js";
import { checkName } from "../handlers/effects.js";
import type { StepRecorder } from "../handlers/recorder.js";
import { getSteps } from "../store/steps.js";
import { INLINE_BYTES, jsonLimits } from "./keep-artifact.js";
import type { AttemptRecords } from "./records.js";

/** The steps of one attempt: those that earlier ones left, and those it adds. */
export class StepLedger implements StepRecorder {
  /** Name to the place among the handler's calls. */
  private readonly names = new Map<string, number>();
  private earlier: Promise<Map<string, Step>> | undefined;

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
    const step = (await this.earlier).get(name);
    return step && { value: await this.read(step) };
  }

  private async read({ value, artifactId }: Step): Promise<JsonValue> {
    return artifactId === null ? (value as JsonValue) : this.records.shared.artifacts.readJson(artifactId);
  }

  async remember(name: string, value: unknown): Promise<JsonValue> {
    const { lease, shared } = this.records;
    const text = toJsonText(value, jsonLimits, `step ${name}`);
    const kept = JSON.parse(text) as JsonValue;
    const valueHash = contentHash(kept);
    const seq = this.names.get(name) ?? 0;
    const place =
      Buffer.byteLength(text) > INLINE_BYTES
        ? { value: null, artifactId: await this.keep(name, kept) }
        : { value: text, artifactId: null };
    const entry = { lease, name, seq, ...place, valueHash, lost: this.records.lost };
    const stored = await shared.steps.add(entry).catch((error: unknown) => {
      if ((error as { code?: string }).code !== "23505") throw error;
      return this.isStored(name, valueHash);
    });
    if (!stored) throw new LeaseLost(lease.jobId, "another attempt has taken over");
    return kept;
  }

  private async keep(name: string, value: JsonValue): Promise<string> {
    const { lease, shared } = this.records;
    return (await shared.artifacts.keepJson(lease, `step ${name}`.slice(0, 200), value)).artifact_id;
  }

  /** The name is taken: by this very write, if its first reply was lost. */
  private async isStored(name: string, valueHash: string): Promise<boolean> {
    const { lease, shared } = this.records;
    const steps = await getSteps(shared.db, lease.jobId);
    return steps.some(
      (step) => step.name === name && step.valueHash === valueHash && step.attemptNo === lease.attemptNo,
    );
  }

  private async load(): Promise<Map<string, Step>> {
    const { lease, shared } = this.records;
    const steps = await getSteps(shared.db, lease.jobId);
    return new Map(steps.map((step) => [step.name, step]));
  }
}
