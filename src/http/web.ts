import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import serveFiles from "@fastify/static";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { OracleError } from "../core/errors.js";
import { sendProblem } from "./problem.js";
import { API } from "./register.js";

const folder = fileURLToPath(new URL("../web/", import.meta.url));

const notBuilt = `Oracle Worker's API is at ${API}, described by ${API}/openapi.json.
The dashboard is not built: npm run build makes it.
`;

/** The dashboard's files, and the answer to whatever is not there. */
export async function registerDashboard(server: FastifyInstance): Promise<void> {
  const built = existsSync(`${folder}index.html`);
  if (built) {
    await server.register(serveFiles, {
      root: folder,
      // The build lays a compressed file beside each.
      preCompressed: true,
      setHeaders: (response, path) => {
        // Files under assets/ have the hash of their content in their name.
        const lasting = path.startsWith(`${folder}assets/`);
        response.setHeader("cache-control", lasting ? "public, max-age=31536000, immutable" : "no-cache");
      },
    });
  } else {
    server.get("/", async (_request, reply) => reply.type("text/plain").send(notBuilt));
  }
  server.setNotFoundHandler((request, reply) => {
    if (built && isPage(request)) return reply.sendFile("index.html");
    const message = `There is no ${request.method} ${request.url.slice(0, 200)}.`;
    return sendProblem(reply, new OracleError("NOT_FOUND", message));
  });
}

/** The dashboard's pages have addresses of their own; each is the same file. */
function isPage({ method, url }: FastifyRequest): boolean {
  const path = url.split("?")[0] ?? "";
  return method === "GET" && !path.startsWith("/api/") && !/\.\w+$/.test(path);
}
