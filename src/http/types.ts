import type { z } from "zod";
import type { OperationName, operations } from "./operations.js";
import type { problem, roles } from "./schemas/common.js";
import type { jobEvents } from "./schemas/events.js";
import type * as fleet from "./schemas/fleet.js";
import type * as jobs from "./schemas/jobs.js";
import type * as records from "./schemas/records.js";
import type { stats } from "./schemas/stats.js";
import type { schemas } from "./schemas.js";

export type JobJson = z.output<typeof jobs.job>;
export type JobWithInputJson = z.output<typeof jobs.jobWithInput>;
export type ProgressJson = z.output<typeof records.progress>;
export type EnqueuedJson = z.output<typeof jobs.enqueued>;
export type BulkAnswer = z.output<typeof jobs.bulkAnswer>;
export type AttemptJson = z.output<typeof records.attempt>;
export type ResultJson = z.output<typeof records.result>;
export type LogLineJson = z.output<typeof records.logLine>;
export type StepJson = z.output<typeof records.step>;
export type EffectJson = z.output<typeof records.effect>;
export type ArtifactJson = z.output<typeof records.artifact>;
export type QueueJson = z.output<typeof fleet.queue>;
export type WorkerJson = z.output<typeof fleet.worker>;
export type TenantJson = z.output<typeof fleet.tenant>;
export type TokenJson = z.output<typeof fleet.token>;
export type SessionJson = z.output<typeof fleet.session>;
export type SettingJson = z.output<typeof fleet.setting>;
export type StatsJson = z.output<typeof stats>;
export type ProblemJson = z.output<typeof problem>;
export type Role = (typeof roles)[number];

type Schemas = typeof schemas;
type PartOf<Name extends OperationName, Part extends "query" | "body"> =
  Schemas[Name] extends Record<Part, infer Schema extends z.ZodType> ? z.input<Schema> : never;

/** `/jobs/:id/retry` needs `{ id }`. */
type PathNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathNames<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;
type ParamsOf<Name extends OperationName> = PathNames<(typeof operations)[Name]["path"]>;

type Given<Key extends string, Value> = [Value] extends [never]
  ? unknown
  : Record<never, never> extends Value
    ? { [K in Key]?: Value }
    : { [K in Key]: Value };

/** What a call of the operation is given. */
export type RequestOf<Name extends OperationName> = Given<"query", PartOf<Name, "query">> &
  Given<"body", PartOf<Name, "body">> &
  ([ParamsOf<Name>] extends [never] ? unknown : { params: Record<ParamsOf<Name>, string> }) &
  (Name extends "enqueueJob" ? { idempotencyKey?: string } : unknown);

export type AnswerOf<Name extends OperationName> = Schemas[Name]["answer"] extends z.ZodType
  ? z.output<Schemas[Name]["answer"]>
  : undefined;

/** One event of a job's stream. */
export type JobEvent = {
  [Name in keyof typeof jobEvents]: { id: string; event: Name; data: z.output<(typeof jobEvents)[Name]> };
}[keyof typeof jobEvents];
