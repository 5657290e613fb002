import { PassThrough } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { OracleError } from "../core/errors.js";
import { getLogs } from "../store/logs.js";
import { requireJob } from "../store/read.js";
import { jobVersions } from "../store/watch.js";
import type { Services } from "./call.js";
import { Follower, hasSeenEnd } from "./follower.js";
import { Followers } from "./followers.js";
import { streams } from "./operations.js";
import { API, authenticate, paramsCheck, scopeOf } from "./register.js";
import { logLineJson } from "./to-json.js";

const LINES_AT_ONCE = 500;
/** How often a stream asks whether its token is still good. */
const ASK_EVERY_MS = 15_000;

/** `GET /jobs/:id/events`: a job's life as server-sent events. */
export function registerEvents(server: FastifyInstance, services: Services): void {
  const { method, path } = streams.followJob;
  const followers = new Followers(services.db);
  const checkParams = paramsCheck(path);
  server.addHook("preClose", async () => followers.close());
  server.route({
    method,
    url: API + path,
    onRequest: (request) => authenticate(request, services, streams.followJob),
    handler: async (request, reply) => {
      const { id } = checkParams(request.params) as { id: string };
      const { within } = scopeOf(request, services, undefined);
      const lastEventId = request.headers["last-event-id"]?.toString();
      const { jobId, seen } = await within(async (db) => {
        const job = await requireJob(db, id);
        const [version] = await jobVersions(db, [job.jobId]);
        return { jobId: job.jobId, seen: hasSeenEnd(lastEventId, version?.version ?? "") };
      });
      // Nothing more will come, which this status tells browsers too.
      if (seen) return reply.code(204).send();
      const out = new PassThrough();
      const readLines = (after: { attemptNo: number; seq: number }) =>
        within(async (db) => (await getLogs(db, jobId, { after, limit: LINES_AT_ONCE })).map(logLineJson));
      const leave = followers.join(jobId, new Follower(out, readLines, lastEventId));
      const asking = setInterval(() => void endIfRefused(request, services, out), ASK_EVERY_MS).unref();
      out.once("close", () => {
        clearInterval(asking);
        leave();
      });
      // Proxies must not gather what is to be seen at once.
      return reply.header("x-accel-buffering", "no").type("text/event-stream").send(out);
    },
  });
}

/** A stream may outlive its token. */
async function endIfRefused(request: FastifyRequest, services: Services, out: PassThrough): Promise<void> {
  await authenticate(request, services, streams.followJob).catch((error: unknown) => {
    // A database that is away for a moment is no reason.
    if (error instanceof OracleError && ["UNAUTHENTICATED", "FORBIDDEN"].includes(error.code)) out.end();
  });
}
