import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { StringDecoder } from "node:string_decoder";
import { OracleError } from "../core/errors.js";
import { safeFileName } from "../core/file-name.js";
import type { Artifact } from "../core/job.js";
import { artifactJson } from "../http/to-json.js";
import type { OpenedArtifact } from "../open-artifact.js";
import { checkJobId, requireJob } from "../store/read.js";
import type { Call } from "./command.js";
import { printable, terminalText } from "./style.js";

export async function artifactCommand(
  { flags, out, withOracle }: Call<{ output?: string }>,
  id: string,
  which: string,
): Promise<void> {
  checkJobId(id);
  const { output } = flags;
  if (out.json && output === undefined) {
    throw new OracleError("INVALID_ARGUMENT", "--json goes with --output: stdout is for the bytes.", {
      field: "--output",
    });
  }
  await withOracle(async (oracle) => {
    const { jobId } = await requireJob(oracle.db, id);
    const artifact = choose(await oracle.artifacts(jobId), jobId, which);
    const opened = (await oracle.openArtifact(artifact.artifactId)) as OpenedArtifact;
    if (output === undefined) return toStdout(opened);
    const file = await toFile(opened, output);
    await out.show({ ...artifactJson(artifact), file }, () => `${artifact.size} bytes in ${printable(file)}`);
  });
}

/** By name, digest or id; of several the latest. */
function choose(artifacts: Artifact[], jobId: string, which: string): Artifact {
  const found = artifacts.findLast(({ name, sha256, artifactId }) =>
    [name, sha256, artifactId].includes(which),
  );
  if (found) return found;
  const names = [...new Set(artifacts.map(({ name }) => name))].join(", ") || "none";
  const message = `Job ${jobId} has no artifact ${JSON.stringify(which)}. It has: ${names}.`;
  throw new OracleError("ARTIFACT_NOT_FOUND", message, { field: "name", jobId });
}

/** Complete and checked before it has its name; a link of that name is replaced, not followed. */
async function toFile({ name, content }: OpenedArtifact, output: string): Promise<string> {
  const isFolder = (await stat(output).catch(() => undefined))?.isDirectory();
  const file = isFolder ? join(output, safeFileName(name)) : output;
  const part = join(dirname(file), `.${basename(file)}.${randomBytes(4).toString("hex")}`);
  try {
    await pipeline(content, createWriteStream(part, { flags: "wx" }));
    await rename(part, file);
    return file;
  } catch (error) {
    await rm(part, { force: true });
    if (error instanceof OracleError) throw error;
    const message = `Cannot write ${file}: ${(error as Error).message}.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field: "--output", cause: error });
  }
}

/** To a pipe as it is; to a terminal only what is text, and nothing that steers it. */
async function toStdout({ content, type, mediaType }: OpenedArtifact): Promise<void> {
  const { stdout } = process;
  if (stdout.isTTY && type === "bytes" && !mediaType.startsWith("text/")) {
    content.destroy();
    const message = `This is ${mediaType}, not for a terminal: give --output, or send it into a pipe.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field: "--output" });
  }
  const decoder = new StringDecoder("utf8");
  for await (const chunk of content) {
    const shown = stdout.isTTY ? terminalText(decoder.write(chunk)) : chunk;
    const left = await new Promise((resolve) => stdout.write(shown, (error) => resolve(error)));
    // Nobody reads any more, which is no fault.
    if (left) return;
  }
}
