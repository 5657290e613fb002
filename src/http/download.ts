import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { OracleError } from "../core/errors.js";
import { safeFileName } from "../core/file-name.js";
import { openArtifact } from "../open-artifact.js";
import type { Services } from "./call.js";
import { streams } from "./operations.js";
import { API, authenticate, paramsCheck, scopeOf } from "./register.js";
import { tenantQuery } from "./schemas/common.js";
import { textCheck } from "./validate.js";

/** What a browser may be told a file is; anything else could be more than bytes to it. */
const harmless = new Set([
  "application/json",
  "image/gif",
  "image/jpeg",
  "image/png",
  "image/webp",
  "text/plain",
  "text/csv",
]);

/** `GET /artifacts/:sha256`: always a file to save, never a page. */
export function registerDownload(server: FastifyInstance, services: Services): void {
  const { method, path } = streams.downloadArtifact;
  const checkParams = paramsCheck(path);
  const checkQuery = textCheck(z.strictObject(tenantQuery));
  server.route({
    method,
    url: API + path,
    onRequest: (request) => authenticate(request, services, streams.downloadArtifact),
    handler: async (request, reply) => {
      const { sha256 } = checkParams(request.params) as { sha256: string };
      const { tenant } = checkQuery(request.query) as { tenant?: string };
      const { within } = scopeOf(request, services, tenant);
      const { oracle } = services;
      const artifact = await within((db) => openArtifact(db, () => oracle.artifactStore(), sha256));
      if (!artifact) {
        throw new OracleError("ARTIFACT_NOT_FOUND", `There is no artifact ${sha256}.`, { field: "sha256" });
      }
      const kind = artifact.mediaType.split(";")[0]?.trim().toLowerCase() ?? "";
      return reply
        .type(harmless.has(kind) ? kind : "application/octet-stream")
        .header("content-length", artifact.size)
        .header("content-disposition", disposition(artifact.name))
        .header("content-security-policy", "default-src 'none'; sandbox")
        .header("etag", `"${sha256}"`)
        .header("cache-control", "private, max-age=31536000, immutable")
        .send(artifact.content);
    },
  });
}

/** The name in ASCII for old readers, and in full as RFC 6266 has it. */
function disposition(name: string): string {
  const safe = safeFileName(name);
  const plain = safe.replace(/[^\x20-\x7e]/g, "_").replace(/["%\\]/g, "_");
  const full = encodeURIComponent(safe).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${full}`;
}
