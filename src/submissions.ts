import { OracleError } from "./core/errors.js";
import { isRefused } from "./store/database-errors.js";
import type { Enqueued, NewJob, Outcome } from "./store/new-job.js";

interface Waiting {
  job: NewJob;
  resolve(enqueued: Enqueued): void;
  reject(error: unknown): void;
}

/** Statements under way: one computes while the other is written to disk. */
const LANES = 2;
/** One statement's share. */
const MOST_JOBS = 500;
const MOST_CHARACTERS = 4_194_304;

/**
 * Single submissions of many callers. A lone one is sent at once; those that come while statements are under way
 * share the next one and its commit. Each caller gets what it would have got alone.
 */
export class Submissions {
  private waiting: Waiting[] = [];
  private readonly statements = new Set<Promise<void>>();
  private scheduled = false;
  private closed = false;

  /** `store` is one statement; the outcomes come in the order of the jobs. `onIdle` hears when nothing is left. */
  constructor(
    private readonly store: (jobs: NewJob[]) => Promise<Outcome[]>,
    private readonly onIdle: () => void = () => {},
  ) {}

  add(job: NewJob): Promise<Enqueued> {
    return new Promise((resolve, reject) => {
      if (this.closed) throw new OracleError("INVALID_ARGUMENT", "enqueue: the connection has been closed.");
      this.waiting.push({ job, resolve, reject });
      this.schedule();
    });
  }

  /** Takes no more; resolves when everybody has an answer. */
  async close(): Promise<void> {
    this.closed = true;
    while (this.scheduled || this.statements.size > 0)
      await (this.scheduled ? turn() : Promise.all(this.statements));
  }

  /** What is submitted in the same turn of the event loop goes together. */
  private schedule(): void {
    if (this.scheduled || this.statements.size === LANES) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      if (this.waiting.length > 0) this.send(this.waiting.splice(0, fitting(this.waiting)));
      if (this.waiting.length > 0) this.schedule();
    });
  }

  private send(group: Waiting[]): void {
    const statement = this.storeEach(group).finally(() => {
      this.statements.delete(statement);
      if (this.waiting.length > 0) this.schedule();
      else if (this.statements.size === 0) this.onIdle();
    });
    this.statements.add(statement);
  }

  private async storeEach(group: Waiting[]): Promise<void> {
    try {
      const outcomes = await this.store(group.map(({ job }) => job));
      for (const [index, waiting] of group.entries()) answer(waiting, outcomes[index] as Outcome);
    } catch (error) {
      // Whether the company or one of them was too much, apart they find out. Who cannot know whether it is stored is told.
      if (group.length > 1 && isRefused(error)) await Promise.all(group.map((one) => this.storeEach([one])));
      else for (const { reject } of group) reject(error);
    }
  }
}

function answer({ resolve, reject }: Waiting, outcome: Outcome): void {
  if (outcome instanceof OracleError) reject(outcome);
  else resolve(outcome);
}

/** How many of them one statement takes, one at least. */
function fitting(waiting: Waiting[]): number {
  let characters = 0;
  const end = waiting.findIndex(({ job }, index) => {
    characters += job.inputText.length;
    return index > 0 && (index === MOST_JOBS || characters > MOST_CHARACTERS);
  });
  return end === -1 ? waiting.length : end;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
