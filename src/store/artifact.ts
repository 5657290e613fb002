import { OracleError } from "../core/errors.js";
import type { Artifact, Lease } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import { type Database, statement } from "./database.js";
import { checkJobId } from "./read.js";

export interface NewArtifact
  extends Pick<Artifact, "artifactId" | "type" | "name" | "mediaType" | "sha256" | "size"> {
  /** Where the store has its bytes. */
  reference?: string;
  /** JSON text, for what is small enough to lie in the row. */
  payload?: string;
}

interface ArtifactRow {
  artifact_id: string;
  job_id: string;
  attempt_no: number;
  tenant_id: string;
  artifact_type: Artifact["type"];
  name: string;
  media_type: string;
  sha256: string;
  size: string;
  created_at: Date;
}

const columns = `artifact_id, job_id, attempt_no, tenant_id, artifact_type, name, media_type, sha256, size, created_at`;

// 008_reports.sql: fences the attempt and inserts the row.
const recordRow = statement<{ became: "recorded" | "lost" | "absent" }>(
  "record-artifact",
  `SELECT {schema}.record_artifact($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb) AS became`,
);

const listOfJob = statement<ArtifactRow>(
  "list-artifacts",
  `SELECT ${columns} FROM {schema}.artifacts WHERE job_id = $1 ORDER BY attempt_no, created_at, artifact_id`,
);

const findOne = statement<ArtifactRow & { reference: string | null; artifact_payload: JsonValue }>(
  "find-artifact",
  `SELECT ${columns}, reference, artifact_payload FROM {schema}.artifacts
   WHERE artifact_id = $1 OR sha256 = $2 ORDER BY created_at DESC LIMIT 1`,
);

const findReferencesInUse = statement<{ reference: string }>(
  "find-references",
  `SELECT DISTINCT reference FROM {schema}.artifacts
   WHERE sha256 = ANY ($1) AND reference = ANY ($2)`,
);

/**
 * Records an artifact of a running attempt. Without reference and payload it shares the bytes of a twin of the same
 * tenant: `absent` when there is none. `lost` when the attempt no longer holds its job.
 */
export async function recordArtifact(
  db: Database,
  { jobId, attemptId }: Pick<Lease, "jobId" | "attemptId">,
  artifact: NewArtifact,
): Promise<"recorded" | "lost" | "absent"> {
  const { artifactId, type, name, mediaType, sha256, size, reference, payload } = artifact;
  const values = [artifactId, jobId, attemptId, type, name, mediaType, sha256, size, reference, payload];
  const [row] = await db.query(recordRow, values);
  return row?.became ?? "lost";
}

/** A job's artifacts, oldest first. */
export async function listArtifacts(db: Database, jobId: string): Promise<Artifact[]> {
  return (await db.query(listOfJob, [checkJobId(jobId)])).map(toArtifact);
}

/** Where an artifact's content is: in its row, or in the store. */
export type ArtifactContentPlace = { payload: JsonValue } | { reference: string };

/** The artifact with this id, or the latest with this digest. */
export async function findArtifact(
  db: Database,
  idOrSha256: string,
): Promise<{ artifact: Artifact; place: ArtifactContentPlace } | undefined> {
  const sha256 = /^[0-9a-f]{64}$/i.test(idOrSha256) ? idOrSha256.toLowerCase() : null;
  const id = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(idOrSha256) ? idOrSha256 : null;
  if (sha256 === null && id === null) {
    const message = `${JSON.stringify(idOrSha256)} is neither an artifact's id nor a SHA-256 digest.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field: "artifact" });
  }
  const [row] = await db.query(findOne, [id, sha256]);
  if (!row) return undefined;
  const { reference, artifact_payload: payload } = row;
  return { artifact: toArtifact(row), place: reference === null ? { payload } : { reference } };
}

/** Which of these references a row still needs. */
export async function findReferences(db: Database, references: string[]): Promise<Set<string>> {
  const digests = references.flatMap((reference) => /[0-9a-f]{64}/.exec(reference) ?? []);
  const rows = await db.query(findReferencesInUse, [digests, references]);
  return new Set(rows.map((row) => row.reference));
}

function toArtifact(row: ArtifactRow): Artifact {
  return {
    artifactId: row.artifact_id,
    jobId: row.job_id,
    attemptNo: row.attempt_no,
    tenantId: row.tenant_id,
    type: row.artifact_type,
    name: row.name,
    mediaType: row.media_type,
    sha256: row.sha256,
    size: Number(row.size),
    createdAt: row.created_at,
  };
}
