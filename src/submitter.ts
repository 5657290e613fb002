import { Announcer } from "./announcer.js";
import type { Dispatcher } from "./core/dispatch.js";
import type { Database, SqlClient } from "./store/database.js";
import { enqueue, enqueueEach } from "./store/enqueue.js";
import type { Enqueued, NewJob } from "./store/new-job.js";
import { Submissions } from "./submissions.js";

/**
 * Stores prepared rows. With a broker, announces at once what has committed; what it does not hear the outbox tells it
 * later.
 */
export class Submitter {
  private readonly announcer: Announcer | undefined;
  private readonly singles: Submissions;

  constructor(
    private readonly db: Database,
    dispatcher: Dispatcher | undefined,
  ) {
    this.announcer = dispatcher && new Announcer(dispatcher);
    const announcing = dispatcher !== undefined;
    this.singles = new Submissions(async (jobs) => {
      const outcomes = await enqueueEach(this.db, jobs, { announcing });
      this.announcer?.announce(jobs, outcomes);
      return outcomes;
    });
  }

  /** One job: by itself in a client's transaction, otherwise together with those of other callers. */
  async one(job: NewJob, client?: SqlClient): Promise<Enqueued> {
    return client ? ((await this.store([job], client))[0] as Enqueued) : this.singles.add(job);
  }

  /** A few thousand per statement, two statements at a time; one in a client's transaction. */
  many(jobs: NewJob[], client?: SqlClient): Promise<Enqueued[]> {
    return inChunks(jobs, client ? 1 : 2, (chunk) => this.store(chunk, client));
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await this.singles.close();
    await this.announcer?.settled();
  }

  private async store(jobs: NewJob[], client: SqlClient | undefined): Promise<Enqueued[]> {
    const announcer = client ? undefined : this.announcer;
    const enqueued = await enqueue(this.db, jobs, { client, announcing: announcer !== undefined });
    announcer?.announce(jobs, enqueued);
    return enqueued;
  }
}

/** One statement's share of a bulk enqueue. */
const MOST_JOBS = 2000;
const MOST_CHARACTERS = 16_777_216;

/** Stores prepared rows in chunks, so many at a time. */
async function inChunks(
  jobs: NewJob[],
  atOnce: number,
  store: (chunk: NewJob[]) => Promise<Enqueued[]>,
): Promise<Enqueued[]> {
  const chunks = toChunks(jobs);
  const stored: Enqueued[][] = [];
  let next = 0;
  const lane = async () => {
    for (let n = next++; n < chunks.length; n = next++) stored[n] = await store(chunks[n] as NewJob[]);
  };
  const lanes = await Promise.allSettled(Array.from({ length: atOnce }, lane));
  const failed = lanes.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
  return stored.flat();
}

function toChunks(jobs: NewJob[]): NewJob[][] {
  const chunks: NewJob[][] = [];
  let chunk: NewJob[] = [];
  let characters = 0;
  for (const job of jobs) {
    characters += job.inputText.length;
    if (chunk.length === 0 || chunk.length === MOST_JOBS || characters > MOST_CHARACTERS) {
      chunk = [];
      chunks.push(chunk);
      characters = job.inputText.length;
    }
    chunk.push(job);
  }
  return chunks;
}
