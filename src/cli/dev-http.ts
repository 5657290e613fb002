import { OracleError } from "../core/errors.js";
import { DevAuthenticator } from "../http/auth.js";
import { DEFAULT_HOST, DEFAULT_PORT } from "../http/listen.js";
import type { Logger } from "../observe/log.js";
import type { Oracle } from "../oracle.js";
import type { Supervisor } from "../worker/supervisor.js";
import { type HttpServer, startHttp } from "./http.js";

export interface DevHttpOptions {
  oracle: Oracle;
  logger: Logger;
  /** Undefined: the usual one, or another where that is taken. */
  port: number | undefined;
  supervisor: Supervisor;
}

export interface DevHttp extends HttpServer {
  /** Logs whoever opens it in, once. */
  loginUrl: string;
  moved: boolean;
}

/** The API and the dashboard of `dev`, with a login of its own and a worker to kill. */
export async function startDevHttp({ oracle, logger, port, supervisor }: DevHttpOptions): Promise<DevHttp> {
  let code = "";
  const start = (at: number) =>
    startHttp({
      oracle,
      logger,
      address: { host: DEFAULT_HOST, port: at },
      authenticator: (tokens) => {
        const dev = new DevAuthenticator(tokens);
        code = dev.code;
        return dev;
      },
      crash: () => crash(supervisor),
    });
  const free = (error: unknown) => {
    if (port === undefined && error instanceof OracleError && error.code === "ADDRESS_REFUSED")
      return undefined;
    throw error;
  };
  const http = await start(port ?? DEFAULT_PORT).catch(free);
  const { url, close } = http ?? (await start(0));
  return { url, close, loginUrl: `${url}/login?code=${code}`, moved: http === undefined };
}

async function crash(supervisor: Supervisor) {
  const killed = supervisor.killOne();
  if (killed) return { pid: killed.pid, worker_id: killed.workerId, job_id: killed.jobId };
  throw new OracleError("NOT_FOUND", "No worker process is up at this moment; try again.");
}
