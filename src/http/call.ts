import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Oracle } from "../oracle.js";
import type { Database } from "../store/database.js";
import type { Authenticator, Identity } from "./auth.js";
import type { Via } from "./credentials.js";
import type { OperationName } from "./operations.js";
import type { schemas } from "./schemas.js";
import type { AnswerOf } from "./types.js";

/** What the routes work with. */
export interface Services {
  oracle: Oracle;
  /** Connections of the server's role; by themselves they see no tenant's rows. */
  db: Database;
  authenticator: Authenticator;
  /** Kills a worker process; only `dev` has one to kill. */
  crash?: (() => Promise<AnswerOf<"crashWorker">>) | undefined;
}

type Part<Name extends OperationName, Key extends "query" | "body"> =
  (typeof schemas)[Name] extends Record<Key, infer Schema extends z.ZodType> ? z.output<Schema> : undefined;

/** One call of an operation, checked. */
export interface Call<Name extends OperationName> {
  params: Record<string, string>;
  query: Part<Name, "query">;
  body: Part<Name, "body">;
  identity: Identity;
  via: Via;
  /** The tenant it acts for; undefined: all of them. */
  tenant: string | undefined;
  /** One transaction that sees what the caller may see. */
  within<T>(work: (db: Database) => Promise<T>): Promise<T>;
  /** One transaction for the tenant of a job that the caller may see; it is undone if `work` throws. */
  acting<T>(jobId: string, work: (db: Database) => Promise<T>): Promise<T>;
  request: FastifyRequest;
  reply: FastifyReply;
}

export type Handler<Name extends OperationName> = (call: Call<Name>) => Promise<AnswerOf<Name>>;
export type Handlers<Name extends OperationName = OperationName> = { [N in Name]: Handler<N> };
