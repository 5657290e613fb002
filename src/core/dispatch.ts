/** A job as it is announced through a message broker. The id says nothing about its tenant or its input. */
export interface Announcement {
  jobId: string;
  queue: string;
  /** Higher runs first. */
  priority: number;
  delayMs: number;
  /** How many attempts it has had: two announcements of one wait are alike, those of two waits are not. */
  attemptCount: number;
}

export interface DispatchEvents {
  /** A message arrived. It is acknowledged when the promise settles: once the lease is won or lost. */
  onMessage(jobId: string): Promise<void>;
  /** The broker is away; the database's own wake-ups take over until `onRestored`. */
  onLost(why: string): void;
  onRestored(): void;
}

/**
 * Carries announcements of jobs. It may lose, repeat, reorder and delay them: whoever gets one must win the job's
 * lease in the database before doing anything.
 */
export interface Dispatcher {
  /** Rejects when the broker does not take them. */
  announce(jobs: Announcement[]): Promise<void>;
  /** Resolves when messages flow, or at once when the broker is away (`onLost` has been called then). */
  listen(queues: string[], events: DispatchEvents): Promise<Listening>;
  close(): Promise<void>;
}

export interface Listening {
  /** No more messages for now; those on their way still come. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}
