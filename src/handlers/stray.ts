import { AsyncLocalStorage } from "node:async_hooks";
import { type ErrorEnvelope, fromErrorEnvelope, toErrorEnvelope } from "./protocol.js";

/** An error that an attempt left to nobody while it ran. The next attempt gets a process of its own. */
export function strayEnvelope(thrown: unknown): ErrorEnvelope {
  const error = toErrorEnvelope(thrown);
  const message = `The handler left an error uncaught: ${error.message}`;
  return { ...error, code: "HANDLER_EXITED", message };
}

/** One inline attempt, as code that it started knows it. */
interface Owner {
  fail(error: Error): void;
  over: boolean;
}

let owners: AsyncLocalStorage<Owner> | undefined;

/**
 * From now on an error that an inline handler left uncaught ends its own attempt, if that still runs, and not this
 * process. For a process that is the worker's own: in a host's process uncaught errors are the host's.
 */
export function surviveStrays(tell: { late(thrown: unknown): void; unowned(thrown: unknown): void }): void {
  const storage = new AsyncLocalStorage<Owner>();
  owners = storage;
  // Rejections that nobody handles come here, too.
  process.on("uncaughtException", (thrown) => {
    const owner = storage.getStore();
    if (!owner) tell.unowned(thrown);
    else if (owner.over) tell.late(thrown);
    else owner.fail(fromErrorEnvelope(strayEnvelope(thrown)));
  });
}

/** Runs an inline handler; as the owner of its strays where they are survived. */
export function asOwner<T>(work: (given: T) => unknown, given: T): unknown {
  return owners === undefined ? work(given) : own(owners, () => work(given));
}

function own(storage: AsyncLocalStorage<Owner>, work: () => unknown): unknown {
  const owner: Owner = { fail: () => {}, over: false };
  let returned: unknown;
  try {
    returned = storage.run(owner, work);
  } catch (thrown) {
    owner.over = true;
    throw thrown;
  }
  if (returned instanceof Promise) return untilOver(owner, returned);
  owner.over = true;
  return returned;
}

function untilOver(owner: Owner, returned: Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const end =
      <V>(settle: (value: V) => void) =>
      (value: V) => {
        owner.over = true;
        settle(value);
      };
    owner.fail = end(reject);
    returned.then(end(resolve), end(reject));
  });
}
