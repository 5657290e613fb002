import { z } from "zod";
import type { OperationName } from "./operations.js";
import { name, sha256, tenantQuery, uuid } from "./schemas/common.js";
import * as fleet from "./schemas/fleet.js";
import * as jobs from "./schemas/jobs.js";
import * as records from "./schemas/records.js";
import { stats, statsQuery } from "./schemas/stats.js";

interface OperationSchemas {
  query?: z.ZodType;
  body?: z.ZodType;
  /** Null: nothing comes back (204). */
  answer: z.ZodType | null;
}

const acting = z.strictObject(tenantQuery);

/**
 * What goes into and comes out of each operation. TypeScript's types are inferred from these, and the JSON
 * Schemas that the server checks and the OpenAPI document shows are made of them.
 */
export const schemas = {
  getSession: { answer: fleet.session },
  logIn: { body: fleet.login, answer: fleet.session },
  logOut: { answer: null },

  enqueueJob: { query: acting, body: jobs.newJob, answer: jobs.enqueued },
  listJobs: { query: jobs.jobQuery, answer: jobs.jobPage },
  retryJobs: { query: acting, body: jobs.bulkChange, answer: jobs.bulkChanged },
  cancelJobs: { query: acting, body: jobs.bulkChange, answer: jobs.bulkChanged },
  getJob: { answer: jobs.jobWithInput },
  getResult: { answer: records.result },
  verifyJob: { answer: records.verification },
  listAttempts: { answer: records.attempts },
  listLogs: { query: records.logQuery, answer: records.logs },
  listSteps: { answer: records.steps },
  listJobEffects: { answer: records.effects },
  listArtifacts: { answer: records.artifacts },
  cancelJob: { answer: jobs.job },
  retryJob: { answer: jobs.job },
  replayJob: { body: jobs.replay, answer: jobs.enqueued },
  approveJob: { answer: jobs.job },
  rejectJob: { body: records.reject, answer: jobs.job },

  listEffects: { query: records.effectQuery, answer: records.effectPage },
  resolveEffect: { body: records.resolve, answer: records.effect },

  listQueues: { query: acting, answer: fleet.queues },
  pauseQueue: { answer: fleet.queue },
  resumeQueue: { answer: fleet.queue },
  listWorkers: { answer: fleet.workers },

  listTenants: { answer: fleet.tenants },
  addTenant: { body: fleet.newTenant, answer: fleet.tenant },
  changeTenant: { body: fleet.tenantChange, answer: fleet.tenant },
  listTokens: { query: fleet.tokenQuery, answer: fleet.tokens },
  addToken: { body: fleet.newToken, answer: fleet.mintedToken },
  revokeToken: { answer: null },

  getStats: { query: statsQuery, answer: stats },
  listSettings: { answer: fleet.settings },
  crashWorker: { answer: fleet.crashed },
} as const satisfies Record<OperationName, OperationSchemas>;

/** The parts of paths that vary, by their names. */
export const pathParams = { id: uuid, queue: name, tenant: name, token: uuid, sha256 } as const;
