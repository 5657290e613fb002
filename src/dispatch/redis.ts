import { hash } from "node:crypto";
import { once } from "node:events";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { Announcement, DispatchEvents, Dispatcher, Listening } from "../core/dispatch.js";

export interface RedisOptions {
  url: string;
  /** Keeps installations that share a Redis apart. Default `oracle`. */
  prefix?: string;
}

interface Message {
  id: string;
}

/** A call that takes longer is given up: the database's own ways must not wait for Redis. */
const CALL_MS = 2_000;
/** A connection that is silent for longer than a blocking read lasts is dead, whatever its socket says. */
const SILENCE_MS = 6_000;
const BLOCK_SECONDS = 2;
const CHECK_MS = 3_000;
/** After a failed call; a connection that is back is used at once. */
const TRY_AGAIN_MS = 500;
/** Messages whose lease is being asked for at once. */
const AT_ONCE = 200;
/** BullMQ runs the lower number first and knows none below 1. */
const MIDDLE_PRIORITY = 1_048_576;

/** Announces jobs through BullMQ queues on Redis, and takes announcements from them. */
export class RedisDispatcher implements Dispatcher {
  private readonly publisher: Redis;
  private readonly queues = new Map<string, Queue<Message>>();
  private readonly listenings = new Set<RedisListening>();
  private readonly prefix: string;
  /** Settles when the first try to connect has ended, well or not. */
  private readonly tried: Promise<unknown>;
  /** Why there is no connection, as long as there is none. */
  private trouble: Error | undefined;

  constructor(private readonly options: RedisOptions) {
    this.prefix = options.prefix ?? "oracle";
    this.publisher = this.connect({
      enableOfflineQueue: false,
      maxRetriesPerRequest: 1,
      commandTimeout: CALL_MS,
    });
    this.tried = once(this.publisher, "ready").catch(() => {});
    this.publisher.on("error", (error) => {
      this.trouble = error;
    });
    this.publisher.on("close", () => {
      this.trouble ??= new Error("the connection was closed");
    });
    this.publisher.on("ready", () => {
      this.trouble = undefined;
    });
  }

  async announce(jobs: Announcement[]): Promise<void> {
    const perQueue = new Map<string, Announcement[]>();
    for (const job of jobs) {
      const others = perQueue.get(job.queue);
      if (others) others.push(job);
      else perQueue.set(job.queue, [job]);
    }
    await Promise.all([...perQueue].map(([queue, some]) => this.queue(queue).addBulk(some.map(toMessage))));
  }

  async listen(queues: string[], events: DispatchEvents): Promise<Listening> {
    const listening = new RedisListening(
      () => this.ping(),
      queues.map((queue) => this.subscribe(queue, events)),
      events,
      () => this.listenings.delete(listening),
    );
    this.listenings.add(listening);
    await listening.start();
    return listening;
  }

  async close(): Promise<void> {
    await Promise.all([...this.listenings].map((listening) => listening.stop()));
    await Promise.all([...this.queues.values()].map((queue) => queue.close().catch(() => {})));
    this.publisher.disconnect();
  }

  /** Rejects with the reason when Redis does not answer. */
  private async ping(): Promise<void> {
    await this.tried;
    await this.publisher.ping().catch((error: Error) => {
      throw this.trouble ?? error;
    });
  }

  private queue(name: string): Queue<Message> {
    let queue = this.queues.get(name);
    if (!queue) {
      queue = new Queue<Message>(toRedisName(name), {
        connection: this.publisher,
        prefix: this.prefix,
        skipVersionCheck: true,
      });
      queue.on("error", () => {});
      this.queues.set(name, queue);
    }
    return queue;
  }

  private subscribe(queue: string, events: DispatchEvents): Subscription {
    const connection = this.connect({ maxRetriesPerRequest: null, socketTimeout: SILENCE_MS });
    const worker = new Worker<Message>(toRedisName(queue), ({ data }) => events.onMessage(data.id), {
      connection,
      prefix: this.prefix,
      autorun: false,
      concurrency: AT_ONCE,
      drainDelay: BLOCK_SECONDS,
      runRetryDelay: TRY_AGAIN_MS,
      skipVersionCheck: true,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    });
    worker.on("error", () => {});
    return { worker, connection };
  }

  private connect(extra: object): Redis {
    const client = new Redis(this.options.url, {
      retryStrategy: (times) => Math.min(2_000, 100 * times),
      connectTimeout: CALL_MS,
      keepAlive: 10_000,
      ...extra,
    });
    // Reported by the check below, once and not per try.
    client.on("error", () => {});
    return client;
  }
}

interface Subscription {
  worker: Worker<Message>;
  /** Made for it, and not closed by it. */
  connection: Redis;
}

/** One worker's subscriptions, and a watch on whether Redis answers at all. */
class RedisListening implements Listening {
  private timer: NodeJS.Timeout | undefined;
  private away = false;
  private paused = false;
  private stopped = false;

  constructor(
    private readonly ping: () => Promise<void>,
    private readonly subscriptions: Subscription[],
    private readonly events: DispatchEvents,
    private readonly onStop: () => void,
  ) {}

  async start(): Promise<void> {
    // Runs until the worker is closed; what goes wrong on the way is reported by its error event.
    for (const { worker } of this.subscriptions) worker.run().catch(() => {});
    await this.check();
  }

  pause(): void {
    if (this.paused) return;
    this.paused = true;
    for (const { worker } of this.subscriptions) void worker.pause(true).catch(() => {});
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    for (const { worker } of this.subscriptions) worker.resume();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    // Forced: what was taken but not acknowledged is delivered again to somebody else, and loses there if it won here.
    await Promise.all(this.subscriptions.map(({ worker }) => worker.close(true).catch(() => {})));
    for (const { connection } of this.subscriptions) connection.disconnect();
    this.onStop();
  }

  private async check(): Promise<void> {
    try {
      await this.ping();
      if (this.away) this.events.onRestored();
      this.away = false;
    } catch (error) {
      if (!this.away && !this.stopped) this.events.onLost(reason(error as NodeJS.ErrnoException));
      this.away = true;
    }
    if (!this.stopped) this.timer = setTimeout(() => void this.check(), CHECK_MS).unref();
  }
}

/** A host with several addresses fails with an error that has a code and no message. */
function reason({ message, code }: NodeJS.ErrnoException): string {
  return message || code || "no answer";
}

/** Names of queues are the users' own; as a digest none of their characters can disturb. */
function toRedisName(queue: string): string {
  return `jobs-${hash("sha256", queue).slice(0, 16)}`;
}

function toMessage({ jobId, priority, delayMs, attemptCount }: Announcement) {
  return {
    name: "run",
    data: { id: jobId },
    opts: {
      // BullMQ drops an id that it has already: the same wait is announced once, the next one anew.
      jobId: `${jobId}-${attemptCount}`,
      priority: MIDDLE_PRIORITY - priority,
      ...(delayMs > 0 ? { delay: Math.ceil(delayMs) } : {}),
    },
  };
}
