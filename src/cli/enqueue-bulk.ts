import { stat } from "node:fs/promises";
import { IdempotencyConflict, OracleError } from "../core/errors.js";
import type { Oracle } from "../oracle.js";
import { isTransient } from "../store/database-errors.js";
import type { NewJob } from "../store/new-job.js";
import type { EnqueueOptions } from "../submit.js";
import { atLine, longestLine, toBulkJob } from "./bulk-line.js";
import { openSource, payloadLimits } from "./input.js";
import { type Line, readLines } from "./lines.js";
import { CLIENT_PATIENCE_MS, untilReachable } from "./open.js";
import { ProgressBar } from "./progress-bar.js";

export interface BulkSource {
  /** A file, or `-`. */
  path: string;
  type: string | undefined;
  defaults: EnqueueOptions;
}

export interface BulkSummary {
  enqueued: number;
  existing: number;
}

/** A chunk is one statement: by jobs, and by bytes because 2000 inputs may be 2 GB. */
const CHUNK_JOBS = 2000;
const CHUNK_BYTES = 8 * 1024 * 1024;

/** Lines read but not stored yet. */
interface Chunk {
  jobs: NewJob[];
  lines: number[];
  bytes: number;
}

/** Stores the lines chunk by chunk, each chunk wholly or not at all, and reads on only when one is stored. */
export async function enqueueBulk(oracle: Oracle, source: BulkSource): Promise<BulkSummary> {
  const limits = payloadLimits(oracle.settings);
  const fromStdin = source.path === "-";
  const total = fromStdin ? undefined : (await stat(source.path).catch(() => undefined))?.size;
  const bytes = fromStdin ? process.stdin : openSource("--bulk", source.path);
  const bar = new ProgressBar(total);
  const summary = { enqueued: 0, existing: 0 };
  const defaults = { type: source.type, options: source.defaults };
  let chunk: Chunk = { jobs: [], lines: [], bytes: 0 };
  let storedTo = 0;
  try {
    const store = async (line: Line | undefined) => {
      await storeChunk(oracle, chunk, summary);
      storedTo = chunk.lines.at(-1) ?? storedTo;
      chunk = { jobs: [], lines: [], bytes: 0 };
      if (line) bar.update(line.bytesRead, summary.enqueued + summary.existing);
    };
    for await (const line of readLines(bytes as AsyncIterable<Buffer>, longestLine(limits))) {
      if (line.text.trim() === "") continue;
      chunk.jobs.push(toBulkJob(line, defaults, limits));
      chunk.lines.push(line.number);
      chunk.bytes += line.text.length;
      if (chunk.jobs.length >= CHUNK_JOBS || chunk.bytes >= CHUNK_BYTES) await store(line);
    }
    await store(undefined);
    return summary;
  } catch (error) {
    throw withProgress(error, storedTo, chunk);
  } finally {
    bar.clear();
  }
}

async function storeChunk(oracle: Oracle, chunk: Chunk, summary: BulkSummary): Promise<void> {
  if (chunk.jobs.length === 0) return;
  try {
    // Ids are made here, so trying again after a lost reply cannot store a job twice.
    const stored = await untilReachable(CLIENT_PATIENCE_MS, () => oracle.submitter.many(chunk.jobs));
    const created = stored.filter(({ jobId }, at) => jobId === chunk.jobs[at]?.jobId).length;
    summary.enqueued += created;
    summary.existing += stored.length - created;
  } catch (error) {
    if (!(error instanceof IdempotencyConflict)) throw error;
    const at = chunk.jobs.findIndex(({ key }) => key === error.key);
    throw at === -1 ? error : atLine(error, chunk.lines[at] ?? 0);
  }
}

/** Says what of the file is stored, so that the rest can be submitted without doubling the beginning. */
function withProgress(error: unknown, storedTo: number, chunk: Chunk): unknown {
  if (!(error instanceof OracleError)) return error;
  const { code, message, field, jobId } = error;
  const before =
    storedTo === 0 ? "Nothing was stored." : `Lines 1 to ${storedTo} were stored, nothing after them.`;
  const doubt = `${storedTo === 0 ? "" : `Lines 1 to ${storedTo} were stored. `}Whether lines ${chunk.lines[0]} to ${chunk.lines.at(-1)} were is not known.`;
  return new OracleError(
    code,
    `${message} ${isTransient(error) && chunk.lines.length > 0 ? doubt : before}`,
    {
      ...(field === undefined ? {} : { field }),
      ...(jobId === undefined ? {} : { jobId }),
      cause: error,
    },
  );
}
