import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(import.meta.resolve("s3rver/bin/s3rver.js"));

export interface S3Server {
  /** What the SDK reads from its environment. */
  env: Record<string, string>;
  bucket: string;
  /** The file in which the server keeps an object. */
  fileOf(key: string): string;
  stop(): Promise<void>;
}

/** A real server that speaks S3, in a process of its own. */
export async function startS3(): Promise<S3Server> {
  const bucket = "artifacts";
  const folder = mkdtempSync(join(tmpdir(), "oracle-worker-s3-"));
  const server = spawn(
    process.execPath,
    // Its page tokens are made with a cipher that newer versions of OpenSSL call old.
    ["--openssl-legacy-provider", program, "-d", folder, "-p", "0", "--configure-bucket", bucket],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  const ended = new Promise<void>((resolve) => server.once("close", () => resolve()));
  const address = await new Promise<string>((resolve, reject) => {
    let said = "";
    for (const stream of [server.stdout, server.stderr]) {
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        said += chunk;
        const [, found] = /listening on (\S+)/.exec(said) ?? [];
        if (found) resolve(found);
      });
    }
    server.once("close", () => reject(new Error(`the S3 server ended: ${said}`)));
  });
  return {
    env: {
      AWS_ENDPOINT_URL_S3: `http://${address}`,
      AWS_REGION: "eu-central-1",
      AWS_ACCESS_KEY_ID: "S3RVER",
      AWS_SECRET_ACCESS_KEY: "S3RVER",
    },
    bucket,
    fileOf: (key) => join(folder, bucket, `${key}._S3rver_object`),
    stop: async () => {
      server.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
