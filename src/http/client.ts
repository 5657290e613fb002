import { type Operation, type OperationName, operations } from "./operations.js";
import { readEvents, type ServerEvent } from "./sse.js";
import type { AnswerOf, JobEvent, ProblemJson, RequestOf } from "./types.js";

export { operations } from "./operations.js";
export type * from "./types.js";

export interface ClientOptions {
  /** Where the API is. Default: the page's own origin. */
  baseUrl?: string;
  /** Left out in a browser that is logged in by cookie. */
  token?: string;
  fetch?: typeof fetch;
}

/** The server's refusal: `code` is stable, `message` says what would be right. */
export class ApiError extends Error {
  readonly code: string;
  readonly field: string | undefined;
  readonly jobId: string | undefined;

  constructor(
    readonly status: number,
    error: ProblemJson["error"],
  ) {
    super(error.message);
    this.name = "ApiError";
    this.code = error.code;
    this.field = error.field;
    this.jobId = error.job_id;
  }
}

interface AnyRequest {
  params?: Record<string, string>;
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  idempotencyKey?: string;
}

type Arguments<Name extends OperationName> =
  Record<never, never> extends RequestOf<Name>
    ? [request?: RequestOf<Name>, signal?: AbortSignal]
    : [request: RequestOf<Name>, signal?: AbortSignal];

/** One method per operation of the API, with its types. */
export type Client = {
  [Name in OperationName]: (...given: Arguments<Name>) => Promise<AnswerOf<Name>>;
} & {
  /** A job's life from the beginning or from an event on, until it ends; reconnects by itself. */
  followJob(id: string, options?: { lastEventId?: string; signal?: AbortSignal }): AsyncGenerator<JobEvent>;
  /** For a link or an image. */
  artifactUrl(sha256: string): string;
};

/** A typed client over fetch, for browsers and Node alike. */
export function createClient(options: ClientOptions = {}): Client {
  const http = new Http(options);
  const calls = Object.entries(operations).map(([name, operation]) => [
    name,
    (request?: AnyRequest, signal?: AbortSignal) => http.call(operation, request, signal),
  ]);
  return {
    ...(Object.fromEntries(calls) as Pick<Client, OperationName>),
    followJob: (id, { lastEventId, signal } = {}) =>
      readEvents(
        (resumeAt) => http.open(`/jobs/${encodeURIComponent(id)}/events`, resumeAt, signal),
        lastEventId,
        signal,
      ) as AsyncGenerator<ServerEvent & JobEvent>,
    artifactUrl: (sha256) => http.url(`/artifacts/${encodeURIComponent(sha256)}`),
  };
}

class Http {
  constructor(private readonly options: ClientOptions) {}

  url(path: string): string {
    return `${this.options.baseUrl ?? ""}/api/v1${path}`;
  }

  async call(operation: Operation, request: AnyRequest = {}, signal?: AbortSignal): Promise<unknown> {
    const { params, query, body, idempotencyKey } = request;
    const path = operation.path.replace(/:(\w+)/g, (_, name) => encodeURIComponent(params?.[name] ?? ""));
    const response = await this.send(path + queryString(query), {
      method: operation.method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
    return response.status === 204 ? undefined : response.json();
  }

  open(path: string, lastEventId: string | undefined, signal?: AbortSignal): Promise<Response> {
    return this.send(path, {
      headers: {
        accept: "text/event-stream",
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
      },
      ...(signal ? { signal } : {}),
    });
  }

  private async send(
    path: string,
    init: RequestInit & { headers: Record<string, string> },
  ): Promise<Response> {
    const { token } = this.options;
    const headers = { ...init.headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
    const call = this.options.fetch ?? globalThis.fetch;
    const response = await call(this.url(path), { ...init, headers });
    if (response.ok) return response;
    throw new ApiError(response.status, await readProblem(response));
  }
}

function queryString(query: AnyRequest["query"] = {}): string {
  const given = Object.entries(query).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, String(value)] as [string, string]],
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

/** A proxy in between may answer with something else than a problem. */
async function readProblem(response: Response): Promise<ProblemJson["error"]> {
  const body = (await response.json().catch(() => undefined)) as ProblemJson | undefined;
  return body?.error ?? { code: "INTERNAL", message: `The server answered ${response.status}.` };
}
