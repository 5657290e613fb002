import { TerminalError } from "../core/errors.js";

/** Ten years: longer than this nothing waits. */
export const LONGEST_SECONDS = 315_360_000;

/** Thrown by `snooze`. */
export class Snooze extends Error {
  constructor(readonly seconds: number) {
    super("snooze");
    if (!(seconds >= 0 && seconds <= LONGEST_SECONDS)) {
      throw new TerminalError(`snooze(${seconds}): give seconds from 0 to ${LONGEST_SECONDS}.`);
    }
  }
}
