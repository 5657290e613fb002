import { CommanderError } from "commander";
import { OracleError } from "../core/errors.js";
import { redactFields, redactText } from "../core/redact.js";
import { exitCodes } from "./exit-codes.js";
import { printable } from "./style.js";

export function exitCodeOf(error: unknown): number {
  return exitCodes[toOracleError(error).code];
}

/** One line on stderr, for machines or for people. Never a stack: what a user can do is in the message. */
export function printError(error: unknown, json: boolean): void {
  const known = toOracleError(error);
  const line = json
    ? JSON.stringify({ error: redactFields(known.toJSON()) })
    : `error ${known.code}: ${printable(redactText(known.message))}`;
  process.stderr.write(`${line}\n`);
}

/** A wrong value of a flag, argument or field: names it, shows it and says what would be right. */
export function wrongValue(field: string, given: string, right: string): OracleError {
  const shown = JSON.stringify(given.length > 100 ? `${given.slice(0, 99)}…` : given);
  return new OracleError("INVALID_ARGUMENT", `${field} is ${shown}; it must be ${right}.`, { field });
}

function toOracleError(error: unknown): OracleError {
  if (error instanceof OracleError) return error;
  if (error instanceof CommanderError) return usageError(error);
  const message = error instanceof Error ? error.message || error.name : String(error);
  return new OracleError("INTERNAL", message, { cause: error });
}

/** Commander says `error: unknown option '--jsn'` and may add a line `(Did you mean --json?)`. */
function usageError({ message }: CommanderError): OracleError {
  const said = message.replace(/^error: /, "").replaceAll("\n", " ");
  // An option is quoted with its value's name: '-f, --flag <value>'.
  const quoted = (/for argument '([^']+)'/.exec(said) ?? /'([^']+)'/.exec(said))?.[1];
  const field = quoted === undefined ? undefined : (/--[a-z-]+/.exec(quoted)?.[0] ?? quoted);
  const sentence = `${said.charAt(0).toUpperCase()}${said.slice(1)}`;
  return new OracleError(
    "INVALID_ARGUMENT",
    /[.)]$/.test(sentence) ? sentence : `${sentence}.`,
    field === undefined ? {} : { field },
  );
}
