import type { CommitCard, IngestionStatus, Metric } from "../core/evolution.js";
import { type Database, statement } from "./database.js";

interface CardRow extends Omit<CommitCard, "created_at"> {
  created_at: Date;
  ingestion_status: IngestionStatus;
}

const columns = `c.job_id, c.repository_id, c.commit_hash, c.parent_commit_hash, c.island_id, c.experiment_id, c.subject,
  c.change_summary, c.evaluation_summary, c.key_files, c.highlights, c.created_at, e.ingestion_status,
  (SELECT coalesce(jsonb_agg(jsonb_build_object('name', m.name, 'value', m.value, 'unit', m.unit,
     'higher_is_better', m.higher_is_better, 'details', m.details) ORDER BY m.name), '[]')
   FROM {schema}.metrics m WHERE m.tenant_id = c.tenant_id AND m.repository_id = c.repository_id
     AND m.commit_hash = c.commit_hash) AS metrics`;

const cardsOf = statement<CardRow>(
  "evolution-cards",
  `SELECT ${columns} FROM {schema}.commit_cards c JOIN {schema}.evolution_jobs e ON e.job_id = c.job_id
   WHERE c.tenant_id = $1 AND c.repository_id = $2 AND ($3::text IS NULL OR c.experiment_id = $3)
   ORDER BY c.created_at, c.job_id`,
);

const cardsByCommit = statement<CardRow>(
  "evolution-cards-by-commit",
  `SELECT ${columns} FROM {schema}.commit_cards c JOIN {schema}.evolution_jobs e ON e.job_id = c.job_id
   WHERE c.tenant_id = $1 AND c.repository_id = $2 AND c.commit_hash = ANY ($3::text[])
   ORDER BY array_position($3::text[], c.commit_hash)`,
);

export interface CardFilter {
  tenantId: string;
  repositoryId: string;
  /** Default: every experiment. */
  experimentId?: string;
}

/** A card and how far it was taken notice of. */
export interface ListedCard extends CommitCard {
  ingestion_status: IngestionStatus;
}

/** The cards of a repository or of one experiment with it, oldest first. */
export async function listCards(db: Database, filter: CardFilter): Promise<ListedCard[]> {
  const { tenantId, repositoryId, experimentId } = filter;
  return (await db.query(cardsOf, [tenantId, repositoryId, experimentId ?? null])).map(toCard);
}

/** The cards of these commits, in this order; commits without one are left out. */
export async function findCards(
  db: Database,
  { tenantId, repositoryId }: Pick<CardFilter, "tenantId" | "repositoryId">,
  commits: string[],
): Promise<CommitCard[]> {
  if (commits.length === 0) return [];
  const rows = await db.query(cardsByCommit, [tenantId, repositoryId, commits]);
  return rows.map(toCard).map(({ ingestion_status, ...card }) => card);
}

function toCard({ created_at, metrics, ...row }: CardRow): ListedCard {
  return { ...row, metrics: metrics as Metric[], created_at: created_at.toISOString() };
}
