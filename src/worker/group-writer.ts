import { setTimeout as sleep } from "node:timers/promises";
import { isTransient } from "../store/database-errors.js";

/** A write on behalf of an attempt, which can tell that the attempt has lost its job. */
interface Fenced {
  lost(): Error | undefined;
}

interface Waiting<Entry, Reply> {
  entry: Entry;
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}

const BATCH = 1000;
const RETRY_MS = 200;

/**
 * Gathers the writes of many jobs while earlier ones are under way, so that a crowd shares a statement and its commit,
 * and a lone one is written at once. What cannot be written for now is tried until it can, or until its attempt has
 * lost its lease: then nobody may write it any more.
 */
export class GroupWriter<Entry extends Fenced, Reply> {
  private queue: Waiting<Entry, Reply>[] = [];
  private writing = false;

  /** `write` is one statement; the replies come in the order of the entries. */
  constructor(private readonly write: (entries: Entry[]) => Promise<Reply[]>) {}

  add(entry: Entry): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.queue.push({ entry, resolve, reject });
      if (this.writing) return;
      this.writing = true;
      // Everything that comes to a write in this turn of the loop shares the statement.
      setImmediate(() => void this.flush());
    });
  }

  private async flush(): Promise<void> {
    while (this.queue.length > 0) {
      await this.writeBatch(this.queue.splice(0, BATCH));
      // Those who were waiting for the batch come with their next write.
      await new Promise(setImmediate);
    }
    this.writing = false;
  }

  private async writeBatch(given: Waiting<Entry, Reply>[]): Promise<void> {
    let batch = given;
    while (batch.length > 0) {
      try {
        const replies = await this.write(batch.map(({ entry }) => entry));
        for (const [index, { resolve }] of batch.entries()) resolve(replies[index] as Reply);
        return;
      } catch (error) {
        if (isTransient(error)) {
          await sleep(RETRY_MS);
          batch = batch.filter(isStillWanted);
        } else if (batch.length > 1) {
          // One that cannot be stored must not take the others with it.
          for (const waiting of batch) await this.writeBatch([waiting]);
          return;
        } else {
          batch[0]?.reject(error);
          return;
        }
      }
    }
  }
}

function isStillWanted({ entry, reject }: Pick<Waiting<Fenced, unknown>, "entry" | "reject">): boolean {
  const lost = entry.lost();
  if (lost) reject(lost);
  return lost === undefined;
}
