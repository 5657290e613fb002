import { OracleError } from "./errors.js";

/** Every option of a function; false: known, but not for others to use. */
export type OptionNames<Options> = Record<keyof Options, boolean>;

/** Refuses options that are no object, and names nobody knows: a misspelt one would be ignored without a word. */
export function checkOptionNames<Options>(what: string, options: Options, known: OptionNames<Options>): void {
  if (typeof options !== "object" || options === null) {
    const message = `${what}: the options are ${String(options)}; they must be an object.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field: "options" });
  }
  const stranger = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (stranger === undefined) return;
  const names = Object.entries(known).filter(([, forOthers]) => forOthers);
  const message = `${what}: there is no option ${JSON.stringify(stranger)}. Known: ${names.map(([name]) => name).join(", ")}.`;
  throw new OracleError("INVALID_ARGUMENT", message, { field: stranger });
}
