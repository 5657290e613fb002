import { PayloadRejected } from "./errors.js";

/** One reason to refuse a JSON value. `trail` holds keys and indexes, innermost first: callers add theirs. */
export interface Fault {
  code: ConstructorParameters<typeof PayloadRejected>[0];
  /** A sentence that follows "The input" or "The input is refused at $.a:", see `located`. */
  says: string;
  /** True when the sentence speaks of one place in the value and not of the whole. */
  located: boolean;
  trail: (string | number)[];
}

export function faultAt(code: Fault["code"], says: string): Fault {
  return { code, says, located: true, trail: [] };
}

export function faultOfWhole(code: Fault["code"], says: string): Fault {
  return { code, says, located: false, trail: [] };
}

export function tooDeep(maxDepth: number): Fault {
  return faultAt("PAYLOAD_TOO_DEEP", `it is nested deeper than ${maxDepth} containers; flatten it`);
}

/** `size` says what is too large, e.g. "is 2097152 bytes of JSON". */
export function tooLarge(size: string, maxBytes: number): Fault {
  const advice = "keep large data elsewhere, for instance as an artifact, and send a reference to it";
  return faultOfWhole("PAYLOAD_TOO_LARGE", `${size}, and the limit is ${maxBytes}; ${advice}`);
}

/** Records that the fault lies below `step`; returns it for `return within(…)`. */
export function within(fault: Fault, step: string | number): Fault {
  fault.trail.push(step);
  return fault;
}

export function refusal(fault: Fault, what: string): PayloadRejected {
  const path = fault.located ? formatPath(fault.trail.toReversed()) : "$";
  const message = fault.located
    ? `The ${what} is refused at ${path}: ${fault.says}.`
    : `The ${what} ${fault.says}.`;
  return new PayloadRejected(fault.code, path, message);
}

const plainKey = /^[A-Za-z_$][\w$]*$/;
const shownSteps = 70;

/** `$.items[3]["odd key"]`; the middle of very long paths and keys is left out. */
export function formatPath(steps: readonly (string | number)[]): string {
  if (steps.length <= shownSteps) return `$${steps.map(formatStep).join("")}`;
  const head = steps.slice(0, shownSteps - 10).map(formatStep);
  return `$${head.join("")}…${steps.slice(-10).map(formatStep).join("")}`;
}

function formatStep(step: string | number): string {
  if (typeof step === "number") return `[${step}]`;
  if (step.length > 60) return `[${quote(step)}]`;
  return plainKey.test(step) ? `.${step}` : `[${quote(step)}]`;
}

/** The text in JSON quotes, shortened, with NUL and lone surrogates escaped: fit for messages. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 59)}…` : text);
}
