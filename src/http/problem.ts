import type { FastifyReply } from "fastify";
import { errorCodes, OracleError } from "../core/errors.js";
import { statuses } from "./status.js";
import type { ProblemJson } from "./types.js";

/** What a caller is told. A fault of our own is told as such and no more: its words may hold anything. */
export function toProblem(error: unknown): ProblemJson {
  const known = toOracleError(error);
  const { code } = known;
  return {
    type: `https://oracle-worker.dev/errors#${code.toLowerCase()}`,
    title: errorCodes[code],
    status: statuses[code],
    error: known.toJSON(),
  };
}

export function sendProblem(reply: FastifyReply, error: unknown): FastifyReply {
  const problem = toProblem(error);
  const { retry_after_seconds: seconds } = problem.error;
  if (seconds !== undefined) reply.header("retry-after", Math.ceil(seconds));
  return reply.code(problem.status).type("application/problem+json").send(JSON.stringify(problem));
}

/** Whether the operator should hear of it: the caller cannot mend it. */
export function isOurFault(error: unknown): boolean {
  return statuses[toOracleError(error).code] >= 500;
}

function toOracleError(error: unknown): OracleError {
  if (error instanceof OracleError) return error;
  const { statusCode, message } = error as { statusCode?: number; message?: string };
  // Fastify's own refusals: a malformed address, an unknown method, a body that never came.
  if (statusCode === 413) return new OracleError("PAYLOAD_TOO_LARGE", "The request is too large.");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new OracleError("INVALID_ARGUMENT", message ?? "The request cannot be understood.");
  }
  return new OracleError("INTERNAL", "Something went wrong in oracle-worker; its log says what.", {
    cause: error,
  });
}
