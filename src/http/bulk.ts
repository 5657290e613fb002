import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { OracleError } from "../core/errors.js";
import { type JsonLimits, parseJsonText } from "../core/json.js";
import { isTransient } from "../store/database-errors.js";
import { enqueue } from "../store/enqueue.js";
import type { NewJob } from "../store/new-job.js";
import type { Services } from "./call.js";
import { type Line, readLines } from "./ndjson.js";
import { streams } from "./operations.js";
import { isOurFault, toProblem } from "./problem.js";
import { API, authenticate, scopeOf } from "./register.js";
import { tenantQuery } from "./schemas/common.js";
import { bulkLine } from "./schemas/jobs.js";
import { toOptions } from "./submission.js";
import type { BulkAnswer } from "./types.js";
import { bodyCheck, textCheck } from "./validate.js";

/** Lines that are stored by one statement. */
const CHUNK = 1000;
const TRIES = 5;

const checkLine = bodyCheck(bulkLine);
const checkQuery = textCheck(z.strictObject(tenantQuery));

/** `POST /jobs/bulk`: lines in, answers out, and no more lines are read than answers are taken. */
export function registerBulk(server: FastifyInstance, services: Services, limits: JsonLimits): void {
  const { method, path } = streams.bulkEnqueue;
  server.register(async (scope) => {
    // The body stays a stream.
    scope.addContentTypeParser("application/x-ndjson", async (_request: unknown, body: Readable) => body);
    scope.route({
      method,
      url: API + path,
      bodyLimit: Number.MAX_SAFE_INTEGER,
      onRequest: (request) => authenticate(request, services, streams.bulkEnqueue),
      handler: async (request, reply) => {
        const { tenant: named } = checkQuery(request.query) as { tenant?: string };
        const { tenant = "default" } = scopeOf(request, services, named);
        if (!(request.body instanceof Readable)) {
          throw new OracleError("INVALID_ARGUMENT", "Send lines of JSON as application/x-ndjson.", {
            field: "content-type",
          });
        }
        const answers = new BulkEnqueue(services, tenant, limits).run(request.body);
        return reply.type("application/x-ndjson").send(Readable.from(toText(answers)));
      },
    });
  });
}

async function* toText(answers: AsyncIterable<BulkAnswer[]>): AsyncGenerator<string> {
  for await (const some of answers) yield some.map((answer) => `${JSON.stringify(answer)}\n`).join("");
}

/** A job on its way, and the line it came from. */
interface Pending {
  line: number;
  job: NewJob;
}

class BulkEnqueue {
  private readonly told = { lines: 0, stored: 0, joined: 0, failed: 0 };

  constructor(
    private readonly services: Services,
    private readonly tenant: string,
    private readonly limits: JsonLimits,
  ) {}

  /** Answers line by line; the last one says how many were stored, also where it could not go on. */
  async *run(source: AsyncIterable<Buffer>): AsyncGenerator<BulkAnswer[]> {
    try {
      for await (const lines of readLines(source, this.limits.maxBytes)) {
        for (let at = 0; at < lines.length; at += CHUNK) yield await this.take(lines.slice(at, at + CHUNK));
      }
      yield [{ done: true, ...this.told }];
    } catch (error) {
      yield [{ done: false, ...this.told, error: toProblem(error).error }];
    }
  }

  private async take(lines: Line[]): Promise<BulkAnswer[]> {
    const answers: (BulkAnswer & { line: number })[] = [];
    const pending: Pending[] = [];
    for (const line of lines) {
      if ("text" in line && line.text.trim() === "") continue;
      this.told.lines++;
      try {
        if ("error" in line) throw line.error;
        pending.push({ line: line.number, job: await this.toJob(line.text) });
      } catch (error) {
        answers.push(this.refuse(line.number, error));
      }
    }
    answers.push(...(await this.store(pending)));
    return answers.sort((a, b) => a.line - b.line);
  }

  private async toJob(text: string): Promise<NewJob> {
    const line = checkLine(parseJsonText(text, this.limits, "line")) as z.output<typeof bulkLine>;
    return this.services.oracle.prepare(line.type, line.input, toOptions(line, this.tenant, line.key));
  }

  /** One statement for all; where one of them is refused, the halves are tried until it stands alone. */
  private async store(pending: Pending[]): Promise<(BulkAnswer & { line: number })[]> {
    if (pending.length === 0) return [];
    try {
      const stored = await this.insert(pending.map(({ job }) => job));
      return pending.map(({ line }, at) => {
        const { jobId = "", created = false } = stored[at] ?? {};
        this.told[created ? "stored" : "joined"]++;
        return { line, job_id: jobId, created };
      });
    } catch (error) {
      // Whatever is wrong with the server is wrong for every line.
      if (isOurFault(error)) throw error;
      if (pending.length === 1) return [this.refuse((pending[0] as Pending).line, error)];
      const half = Math.ceil(pending.length / 2);
      return [...(await this.store(pending.slice(0, half))), ...(await this.store(pending.slice(half)))];
    }
  }

  /** Ids are made before, so trying again after a lost reply cannot store a job twice. */
  private async insert(jobs: NewJob[]) {
    for (let tries = 1; ; tries++) {
      try {
        return await this.services.db.asTenant(this.tenant, (db) => enqueue(db, jobs));
      } catch (error) {
        if (!isTransient(error) || tries === TRIES) throw error;
        await sleep(200 * tries);
      }
    }
  }

  private refuse(line: number, error: unknown): BulkAnswer & { line: number } {
    this.told.failed++;
    return { line, error: toProblem(error).error };
  }
}
