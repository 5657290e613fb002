import type { Dispatcher } from "../core/dispatch.js";
import { OracleError } from "../core/errors.js";
import type { Settings } from "../core/settings.js";
import { fail, ok, type Symptom, warn } from "../store/doctor/check.js";

/** Where REDIS_URL says, if it says. The two packages are not installed with this one: most need no Redis. */
export async function openRedis({
  REDIS_URL: url,
  ORACLE_SCHEMA: prefix,
}: Settings): Promise<Dispatcher | undefined> {
  if (url === undefined) return undefined;
  const { redisDispatcher } = await import("../dispatch/index.js").catch((cause: unknown) => {
    const message = "REDIS_URL is set, but Redis cannot be used: npm install bullmq ioredis.";
    throw new OracleError("INVALID_SETTING", message, { field: "REDIS_URL", cause });
  });
  return redisDispatcher({ url, prefix });
}

/** Whether a worker with these settings would hear from Redis. Without it jobs run all the same. */
export async function examineRedis(settings: Settings): Promise<Symptom[]> {
  try {
    const dispatcher = await openRedis(settings);
    return dispatcher === undefined ? [] : await examineDispatcher(dispatcher);
  } catch (error) {
    if (!(error instanceof OracleError)) throw error;
    return [fail(error.message, "install the two packages, or leave REDIS_URL out")];
  }
}

async function examineDispatcher(dispatcher: Dispatcher): Promise<Symptom[]> {
  let why: string | undefined;
  await dispatcher.listen([], {
    onMessage: async () => {},
    onLost: (reason) => {
      why = reason;
    },
    onRestored() {},
  });
  await dispatcher.close();
  if (why === undefined) return ok("answers");
  const message = `Redis does not answer (${why}); NOTIFY and polling stand in for it`;
  return [warn(message, "start it, correct REDIS_URL, or leave REDIS_URL out")];
}
