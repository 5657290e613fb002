import { OracleError } from "../core/errors.js";

/** Remembers a call for as long as it runs. Its rejection is the handler's to see, or nobody's: it crashes nothing. */
export function follow<T>(calls: Set<Promise<unknown>>, promise: Promise<T>): Promise<T> {
  calls.add(promise);
  const forget = () => calls.delete(promise);
  promise.then(forget, forget);
  return promise;
}

export function leftOpen(): OracleError {
  const message = "The handler ended while a step or an effect was still open: await every one of them.";
  return new OracleError("EFFECT_OPEN", message);
}
