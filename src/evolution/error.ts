import { type ErrorCode, type ErrorDetails, OracleError } from "../core/errors.js";

export type EvolutionCode = Extract<ErrorCode, `EVOLUTION_${string}`>;

/** An evolution job cannot be done or stored: because of its repository, its changes, its evaluation or the database. */
export class EvolutionWorkerError extends OracleError {
  constructor(code: EvolutionCode, message: string, details: ErrorDetails = {}) {
    super(code, message, details);
  }
}
