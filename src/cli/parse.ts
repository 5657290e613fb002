import { OracleError } from "../core/errors.js";
import { parseDuration, settingsTable } from "../core/settings.js";
import { type JobState, parseJobState } from "../core/states.js";
import { wrongValue } from "./errors.js";

/** Given to commander with a flag: reads the flag's text, or throws the error that names the flag. */
type FlagParser<T> = (given: string) => T;

export function parseWholeNumber(flag: string, least: number, most: number): FlagParser<number> {
  return (given) => {
    const number = /^-?\d{1,15}$/.test(given.trim()) ? Number(given) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw wrongValue(flag, given, `a whole number from ${least} to ${most}`);
  };
}

export function parseSeconds(flag: string, least: number, most: number): FlagParser<number> {
  return (given) => {
    const value = parseDuration(given) ?? Number.NaN;
    if (value >= least && value <= most) return value;
    throw wrongValue(flag, given, `seconds from ${least} to ${most}, such as 30, 30s, 5m or 2h`);
  };
}

export function parseWholeSeconds(flag: string, least: number, most: number): FlagParser<number> {
  return (given) => {
    const value = parseDuration(given) ?? Number.NaN;
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    throw wrongValue(flag, given, `whole seconds from ${least} to ${most}, such as 30, 30s, 5m or 2h`);
  };
}

export function parseText(flag: string, most: number): FlagParser<string> {
  return (given) => {
    if (given.length >= 1 && given.length <= most) return given;
    throw wrongValue(flag, given, `a text of 1 to ${most} characters`);
  };
}

export function parseOneOf<Word extends string>(flag: string, words: readonly Word[]): FlagParser<Word> {
  return (given) => {
    const word = words.find((candidate) => candidate === given.toLowerCase());
    if (word !== undefined) return word;
    throw wrongValue(flag, given, words.join(" or "));
  };
}

export function parseState(flag: string): FlagParser<JobState> {
  return (given) => {
    try {
      return parseJobState(given);
    } catch (error) {
      throw new OracleError("INVALID_ARGUMENT", `${flag}: ${(error as Error).message}`, { field: flag });
    }
  };
}

export function parseDatabaseUrl(given: string): string {
  const { parse, right } = settingsTable.DATABASE_URL;
  if (parse(given) !== undefined) return given;
  // Not shown: it may hold a password.
  const message = `--database-url is not usable; it must be ${right}.`;
  throw new OracleError("INVALID_ARGUMENT", message, { field: "--database-url" });
}

const TEN_YEARS_SECONDS = 315_360_000;
const isoMoment = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

/** A moment, or seconds from now as a number, which the database counts by its own clock. */
export function parseMoment(field: string): FlagParser<Date | number> {
  return (given) => {
    const delay = given.startsWith("+") ? parseDuration(given.slice(1)) : undefined;
    if (delay !== undefined && delay <= TEN_YEARS_SECONDS) return delay;
    const date = parseIso(given);
    if (date) return date;
    throw wrongValue(
      field,
      given,
      "a time with its zone such as 2030-01-31T08:00:00Z, or a delay such as +30s, +5m or +2h, up to ten years",
    );
  };
}

function parseIso(given: string): Date | undefined {
  const [, year, month, day] = isoMoment.exec(given) ?? [];
  const date = new Date(given);
  if (year === undefined || Number.isNaN(date.getTime())) return undefined;
  // JavaScript reads 30 February as 2 March.
  return new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day)
    ? date
    : undefined;
}
