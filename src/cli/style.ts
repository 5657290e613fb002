import type { JsonValue } from "../core/json.js";
import type { AttemptStatus, JobState } from "../core/states.js";

const colours = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
export type Colour = keyof typeof colours;

/** Colours on a terminal only; `hasColors` also honours NO_COLOR and TERM=dumb. */
export function paint(text: string, colour: Colour | undefined): string {
  if (!colour || !process.stdout.isTTY || !process.stdout.hasColors()) return text;
  return `\u001b[${colours[colour]}m${text}\u001b[0m`;
}

const stateColours: Partial<Record<JobState | AttemptStatus, Colour>> = {
  RUNNING: "cyan",
  SUCCEEDED: "green",
  FAILED_RETRYABLE: "yellow",
  FAILED_TERMINAL: "red",
  FAILED: "red",
  LEASE_EXPIRED: "yellow",
  CANCELLED: "dim",
  SUPERSEDED: "dim",
};

export function stateColour(state: JobState | AttemptStatus): Colour | undefined {
  return stateColours[state];
}

/** A title over lines that stand in a little. */
export function titled(title: string, text: string): string {
  return `${paint(title, "bold")}\n${text.replaceAll(/^/gm, "  ")}`;
}

/** JSON to look at. Its strings escape what steers a terminal but for the upper control characters. */
export function prettyJson(value: JsonValue): string {
  return JSON.stringify(value, null, 2).replaceAll(/[\u007f-\u009f]/g, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}

/** What steers a terminal, or shows text in another order than it has. */
const steering = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** One line that cannot steer the terminal: names, keys and messages come from anybody. */
export function printable(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, " | ").replaceAll(steering, escaped);
}

/** Lines that cannot steer the terminal. */
export function terminalText(text: string): string {
  return text.replaceAll(steering, (character) =>
    "\n\t".includes(character) ? character : escaped(character),
  );
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xff ? `\\u${code.toString(16)}` : `\\x${code.toString(16).padStart(2, "0")}`;
}
