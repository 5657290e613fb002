import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";

export interface HealthSource {
  /** Undefined when all is well, otherwise what is wrong. */
  live(): string | undefined;
  ready(): Promise<string | undefined>;
  /** What does not keep it from working, and should be known all the same. */
  remark(): Promise<string | undefined>;
  /** A page for Prometheus. */
  metrics(): Promise<string>;
}

/** `/healthz`, `/readyz` and `/metrics` on a small port. Holds nothing secret: counts, names of queues and types. */
export class HealthServer {
  private readonly server: Server;

  constructor(private readonly source: HealthSource) {
    this.server = createServer((request, response) => {
      this.answer(request.method ?? "", request.url ?? "", response).catch(() =>
        reply(response, 500, "text/plain", "the page could not be made\n"),
      );
    });
    this.server.requestTimeout = 5_000;
  }

  /** Resolves with the port, which the system chooses for 0. */
  async listen(port: number, host: string): Promise<number> {
    this.server.listen(port, host);
    await once(this.server, "listening");
    return (this.server.address() as { port: number }).port;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async answer(method: string, url: string, response: ServerResponse): Promise<void> {
    const { source } = this;
    if (method !== "GET" && method !== "HEAD") return reply(response, 405, "text/plain", "GET only\n");
    switch (url.split("?")[0]) {
      case "/healthz":
        return verdict(response, source.live());
      case "/readyz":
        return verdict(response, await source.ready(), await source.remark());
      case "/metrics":
        return reply(response, 200, "text/plain; version=0.0.4; charset=utf-8", await source.metrics());
      default:
        return reply(response, 404, "text/plain", "there are /healthz, /readyz and /metrics\n");
    }
  }
}

function verdict(response: ServerResponse, wrong: string | undefined, remark?: string): void {
  const lines = remark === undefined ? [wrong ?? "ok"] : [wrong ?? "ok", remark];
  reply(response, wrong === undefined ? 200 : 503, "text/plain", `${lines.join("\n")}\n`);
}

function reply(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
}
