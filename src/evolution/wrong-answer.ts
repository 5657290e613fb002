import { OracleError } from "../core/errors.js";
import { EvolutionWorkerError } from "./error.js";

export type RoleName = "planner" | "coder" | "evaluator";

/** What was thrown because of a role's answer, with the role's name and the code that goes with it. */
export function wrongAnswer(role: RoleName, thrown: unknown): unknown {
  if (!(thrown instanceof OracleError)) return thrown;
  const { code, field } = thrown;
  if (code !== "OUTPUT_INVALID" && code !== "OUTPUT_REJECTED") return thrown;
  const message = thrown.message
    .replace(/^The output breaks its schema:/, `The ${role}'s answer:`)
    .replace(/^The answer/, `The ${role}'s answer`)
    .replace(/^The handler's process (.*); .*$/, `The ${role}'s answer: it $1.`);
  const details = { cause: thrown, ...(field === undefined ? {} : { field }) };
  // Another answer of a coder may be better. What an evaluator says of the same change would be the same.
  if (role === "coder") return new EvolutionWorkerError("EVOLUTION_EDITS", message, details);
  if (role === "evaluator")
    return new EvolutionWorkerError("EVOLUTION_EVALUATION", message, { ...details, retryable: false });
  return new OracleError(code, message, details);
}
