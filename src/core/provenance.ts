import type { Effect, Step } from "./effect.js";
import { canonicalJson, sha256Hex } from "./hash.js";
import type { JsonValue } from "./json.js";

/** What a result came from. Every part is a row that never changes once the job has succeeded. */
export interface Provenance {
  specHash: string;
  handlerVersion: string | null;
  attemptId: string;
  attemptNo: number;
  modelMetadata: JsonValue;
  contentHash: string;
  steps: Pick<Step, "name" | "valueHash">[];
  effects: Pick<Effect, "name" | "kind" | "state" | "requestHash" | "responseHash">[];
  /** Hashes of the artifacts of the attempt that succeeded. */
  artifacts: string[];
}

/** SQL computes the same in provenance_hash and records_hash, when it stores the result. */
export function provenanceHash(parts: Provenance): string {
  return sha256Hex(
    [
      "provenance 1",
      parts.specHash,
      parts.handlerVersion ?? "-",
      `${parts.attemptId} ${parts.attemptNo}`,
      parts.modelMetadata === null ? "-" : canonicalJson(parts.modelMetadata),
      parts.contentHash,
      recordsHash(parts),
    ].join("\n"),
  );
}

function recordsHash({ steps, effects, artifacts }: Provenance): string {
  const lines = [
    ...steps.map(({ name, valueHash }) => `step ${JSON.stringify(name)} ${valueHash}`),
    ...effects.map(
      ({ name, kind, state, requestHash, responseHash }) =>
        `effect ${JSON.stringify(name)} ${kind} ${state} ${requestHash} ${responseHash ?? "-"}`,
    ),
    ...artifacts.map((sha256) => `artifact ${sha256}`),
  ];
  if (lines.length === 0) return "-";
  // By bytes, as COLLATE "C" sorts.
  const sorted = lines.map((line) => Buffer.from(line)).sort(Buffer.compare);
  return sha256Hex(sorted.map((line) => line.toString()).join("\n"));
}
