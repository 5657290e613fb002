/** Who may call it; `public` needs no token at all. */
export type Access = "public" | "viewer" | "operator" | "admin";

export interface Operation {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below `/api/v1`. */
  readonly path: string;
  readonly access: Access;
  /** Concerns every tenant, so only a token for all tenants may call it. */
  readonly allTenants?: true;
  readonly about: string;
}

/**
 * Every operation of the API, once: the server registers these, the client calls these, the OpenAPI document
 * lists these. What goes in and comes out is in schemas.ts, under the same names. Imports nothing, because
 * browsers load it.
 */
export const operations = {
  getSession: { method: "GET", path: "/session", access: "viewer", about: "who the caller is" },
  logIn: {
    method: "POST",
    path: "/session",
    access: "public",
    about: "exchange a token or a one-time code for a cookie",
  },
  logOut: { method: "DELETE", path: "/session", access: "public", about: "forget the cookie" },

  enqueueJob: { method: "POST", path: "/jobs", access: "operator", about: "submit one job" },
  listJobs: { method: "GET", path: "/jobs", access: "viewer", about: "jobs, newest first" },
  retryJobs: {
    method: "POST",
    path: "/jobs/retry",
    access: "operator",
    about: "retry failed or cancelled jobs, or count them",
  },
  cancelJobs: {
    method: "POST",
    path: "/jobs/cancel",
    access: "operator",
    about: "cancel unfinished jobs, or count them",
  },
  getJob: { method: "GET", path: "/jobs/:id", access: "viewer", about: "one job with its input" },
  getResult: {
    method: "GET",
    path: "/jobs/:id/result",
    access: "viewer",
    about: "the result of a job that succeeded",
  },
  verifyJob: {
    method: "GET",
    path: "/jobs/:id/verify",
    access: "viewer",
    about: "compute the job's hashes anew",
  },
  listAttempts: {
    method: "GET",
    path: "/jobs/:id/attempts",
    access: "viewer",
    about: "every attempt with its cause",
  },
  listLogs: {
    method: "GET",
    path: "/jobs/:id/logs",
    access: "viewer",
    about: "what the attempts logged, oldest first",
  },
  listSteps: { method: "GET", path: "/jobs/:id/steps", access: "viewer", about: "remembered steps" },
  listJobEffects: {
    method: "GET",
    path: "/jobs/:id/effects",
    access: "viewer",
    about: "the job's side effects",
  },
  listArtifacts: {
    method: "GET",
    path: "/jobs/:id/artifacts",
    access: "viewer",
    about: "what the attempts kept",
  },
  cancelJob: {
    method: "POST",
    path: "/jobs/:id/cancel",
    access: "operator",
    about: "cancel, or ask the running attempt to stop",
  },
  retryJob: {
    method: "POST",
    path: "/jobs/:id/retry",
    access: "operator",
    about: "put a failed or cancelled job back in its queue",
  },
  replayJob: {
    method: "POST",
    path: "/jobs/:id/replay",
    access: "operator",
    about: "a new job like this one, with the same input or another",
  },
  approveJob: {
    method: "POST",
    path: "/jobs/:id/approve",
    access: "operator",
    about: "let a plan be carried out",
  },
  rejectJob: {
    method: "POST",
    path: "/jobs/:id/reject",
    access: "operator",
    about: "end a job whose plan is refused",
  },

  listEffects: { method: "GET", path: "/effects", access: "viewer", about: "side effects, newest first" },
  resolveEffect: {
    method: "POST",
    path: "/effects/:id/resolve",
    access: "operator",
    about: "settle an effect that is in doubt",
  },

  listQueues: { method: "GET", path: "/queues", access: "viewer", about: "queues and what waits in them" },
  pauseQueue: {
    method: "POST",
    path: "/queues/:queue/pause",
    access: "operator",
    allTenants: true,
    about: "start nothing more from a queue",
  },
  resumeQueue: {
    method: "POST",
    path: "/queues/:queue/resume",
    access: "operator",
    allTenants: true,
    about: "start jobs from it again",
  },
  listWorkers: {
    method: "GET",
    path: "/workers",
    access: "viewer",
    allTenants: true,
    about: "worker processes",
  },

  listTenants: { method: "GET", path: "/tenants", access: "viewer", about: "tenants the caller may see" },
  addTenant: { method: "POST", path: "/tenants", access: "admin", allTenants: true, about: "add a tenant" },
  changeTenant: {
    method: "PATCH",
    path: "/tenants/:tenant",
    access: "admin",
    allTenants: true,
    about: "change a tenant's share and limits",
  },
  listTokens: { method: "GET", path: "/tokens", access: "admin", about: "tokens, without their secrets" },
  addToken: {
    method: "POST",
    path: "/tokens",
    access: "admin",
    about: "make a token; its secret is shown once",
  },
  revokeToken: { method: "DELETE", path: "/tokens/:token", access: "admin", about: "end a token" },

  getStats: {
    method: "GET",
    path: "/stats",
    access: "viewer",
    about: "depth, throughput, times, failures, and what needs a person",
  },
  listSettings: {
    method: "GET",
    path: "/settings",
    access: "viewer",
    allTenants: true,
    about: "the settings in force",
  },
  crashWorker: {
    method: "POST",
    path: "/dev/crash",
    access: "admin",
    allTenants: true,
    about: "kill a worker process; only under `dev`",
  },
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof operations;

/** Not in the table above because neither their requests nor their answers are one JSON document. */
export const streams = {
  bulkEnqueue: {
    method: "POST",
    path: "/jobs/bulk",
    access: "operator",
    about: "submit one job per line of NDJSON",
  },
  followJob: {
    method: "GET",
    path: "/jobs/:id/events",
    access: "viewer",
    about: "a job's life as server-sent events",
  },
  downloadArtifact: {
    method: "GET",
    path: "/artifacts/:sha256",
    access: "viewer",
    about: "the bytes of an artifact",
  },
} as const satisfies Record<string, Operation>;
