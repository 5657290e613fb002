import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CreateWorkerOptions, connect, createWorker, type Oracle } from "oracle-worker";
import pg from "pg";
import { afterAll, beforeAll, inject } from "vitest";
import type { Worker } from "../../dist/worker/worker.js";
import { administer, withDatabase } from "./server.js";

/** A database of its own for the calling test file: a copy of the migrated template, dropped at the end. */
export function useTestDatabase(): TestDatabase {
  const db = new TestDatabase();
  beforeAll(() => db.open());
  afterAll(() => db.close());
  return db;
}

export class TestDatabase {
  /** The login of a superuser; connections made through `connect` still run as the restricted role. */
  url = "";
  /** Where artifacts' bytes are. */
  readonly artifacts = mkdtempSync(join(tmpdir(), "oracle-worker-artifacts-"));
  private readonly name = `test_${randomBytes(6).toString("hex")}`;
  private readonly workers: Worker[] = [];
  private opened: { oracle: Oracle; pool: pg.Pool } | undefined;

  get oracle(): Oracle {
    if (!this.opened) throw new Error("the test database opens with the file's first hook");
    return this.opened.oracle;
  }

  /** Plain SQL as the superuser. */
  async sql(text: string, values?: unknown[]): Promise<pg.QueryResultRow[]> {
    return (await (this.opened as { pool: pg.Pool }).pool.query(text, values)).rows;
  }

  /** Plain SQL as one of the installation's roles. */
  async as(
    role: "worker" | "server" | "tenant" | "owner",
    text: string,
    values?: unknown[],
  ): Promise<pg.QueryResultRow[]> {
    const client = await (this.opened as { pool: pg.Pool }).pool.connect();
    try {
      await client.query(`SET ROLE oracle_${role}`);
      return (await client.query(text, values)).rows;
    } finally {
      await client.query("RESET ROLE");
      client.release();
    }
  }

  /** A worker in this process, stopped with the file. */
  async worker(options: CreateWorkerOptions): Promise<Worker> {
    const worker = await createWorker(this.oracle, { pollSeconds: 0.1, ...options });
    this.workers.push(worker);
    return worker;
  }

  async open(): Promise<void> {
    const adminUrl = inject("adminUrl");
    await administer(adminUrl, `CREATE DATABASE ${this.name} TEMPLATE ${inject("template")}`);
    this.url = withDatabase(adminUrl, this.name);
    const pool = new pg.Pool({ connectionString: this.url, max: 4 });
    pool.on("error", () => {});
    const artifacts = `file:${this.artifacts}`;
    this.opened = { oracle: await connect({ databaseUrl: this.url, artifacts }), pool };
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.opened?.oracle.close();
    await this.opened?.pool.end();
    rmSync(this.artifacts, { recursive: true, force: true });
    await administer(inject("adminUrl"), `DROP DATABASE ${this.name} WITH (FORCE)`);
  }
}

/** Waits for a condition of the outside world; polls it, and says what it waited for when it gives up. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false>,
  ms = 30_000,
): Promise<T> {
  const endsAt = Date.now() + ms;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > endsAt) throw new Error(`waited ${ms} ms in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
