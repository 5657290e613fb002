import type { DispatchEvents, Dispatcher, Listening } from "../core/dispatch.js";
import type { WorkerEventListener } from "../core/events.js";
import type { Database } from "../store/database.js";
import { markAnnounced, putBackAnnouncements, relayOutbox } from "../store/outbox.js";

export interface DispatchOptions {
  workerId: string;
  queues: string[];
  emit: WorkerEventListener;
}

interface DispatchHooks {
  /** How many more jobs may be taken. */
  room(): number;
  /** A search of the database that may take all the room there is. */
  search(): Promise<void> | undefined;
  /** Tries to win the job's lease and to run it. */
  run(jobId: string): Promise<{ won: boolean }>;
  /** Jobs may wait that no message will bring: the database must be searched. */
  wake(): void;
}

/** How often the database is searched for jobs that no message spoke of, while messages flow. */
const BACKSTOP_MS = 5_000;

/**
 * A worker's part in carrying wake-ups by messages: it relays the outbox, takes messages while there is room, and
 * says whether the database must be searched instead.
 */
export class Dispatch {
  private listening: Listening | undefined;
  private away = true;
  /** Jobs whose leases are being asked for. */
  entering = 0;
  private relaying = false;
  private relayAgain = false;
  /** Messages that somebody else shall hear, and the statement that will see to it. */
  private refused: string[] = [];
  private puttingBack: Promise<void> | undefined;
  /** Since the last search messages were refused, or told of jobs that others had: new ones may be far behind. */
  private behind = false;
  private searchedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly db: Database,
    private readonly dispatcher: Dispatcher,
    private readonly options: DispatchOptions,
    private readonly hooks: DispatchHooks,
  ) {}

  async start(): Promise<void> {
    const { queues, workerId, emit } = this.options;
    await markAnnounced(this.db, queues);
    this.away = false;
    const events: DispatchEvents = {
      onMessage: (jobId) => this.take(jobId),
      onLost: (why) => {
        this.away = true;
        emit({ event: "dispatch.lost", workerId, why });
        this.hooks.wake();
      },
      onRestored: () => {
        this.away = false;
        emit({ event: "dispatch.restored", workerId });
        void this.relay();
      },
    };
    this.listening = await this.dispatcher.listen(queues, events);
    void this.relay();
  }

  /** Messages flow: whoever is notified of a job by the database will hear of it by a message, too. */
  get flows(): boolean {
    return !this.away;
  }

  /** Messages flow, so the database need not be searched, unless they lag or the last search is long ago. */
  get suffices(): boolean {
    return this.flows && !this.behind && performance.now() - this.searchedAt < BACKSTOP_MS;
  }

  searched(): void {
    this.behind = false;
    this.searchedAt = performance.now();
  }

  /** There is room, and nothing ready to fill it with: take messages again, which were left to other workers. */
  resume(): void {
    this.listening?.resume();
  }

  /** Announces what the outbox holds. One round at a time; a call during one leads to another. */
  async relay(): Promise<void> {
    if (this.relaying || this.away) {
      this.relayAgain = true;
      return;
    }
    this.relaying = true;
    try {
      do {
        this.relayAgain = false;
      } while ((await relayOutbox(this.db, (jobs) => this.dispatcher.announce(jobs))) || this.relayAgain);
    } catch {
      // Rows stay where they are until the broker or the database is back; a search finds their jobs meanwhile.
      this.hooks.wake();
    }
    this.relaying = false;
  }

  async stop(): Promise<void> {
    await this.listening?.stop();
  }

  /** A message is done with as soon as the lease is won or lost; what follows is the lease's business. */
  private async take(jobId: string): Promise<void> {
    await this.hooks.search();
    if (this.entering >= this.hooks.room()) {
      this.listening?.pause();
      this.behind = true;
      this.refused.push(jobId);
      this.puttingBack ??= this.putBack();
      return this.puttingBack;
    }
    this.entering++;
    // A database that does not answer now: polling finds the job when it does.
    const taken = await this.hooks.run(jobId).catch(() => undefined);
    this.entering--;
    if (taken && !taken.won) this.behind = true;
    // Not left to the end of a job, which tells that there is room: all may have lost.
    if (this.behind && !this.hooks.search()) this.hooks.wake();
  }

  private async putBack(): Promise<void> {
    // What else is refused in this turn of the loop shares the statement.
    await new Promise(setImmediate);
    this.puttingBack = undefined;
    // A database that does not answer now: polling finds the jobs when it does.
    await putBackAnnouncements(this.db, this.refused.splice(0)).catch(() => {});
  }
}
