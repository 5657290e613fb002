import type { Dispatcher } from "../core/dispatch.js";
import { RedisDispatcher, type RedisOptions } from "./redis.js";

export type { Announcement, Dispatcher } from "../core/dispatch.js";
export type { RedisOptions } from "./redis.js";

/**
 * Wake-ups through Redis, for `connect` and `createWorker`. Redis is only a hint: it may be slow, lose, repeat or be
 * away, and every job still runs. Needs `bullmq` and `ioredis` installed.
 */
export function redisDispatcher(options: RedisOptions): Dispatcher {
  return new RedisDispatcher(options);
}
