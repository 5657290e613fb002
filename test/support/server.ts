import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "oracle-worker";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { openEmbedded } from "../../dist/embedded/index.js";

declare module "vitest" {
  interface ProvidedContext {
    /** A superuser's login; its database is only the place from which others are made. */
    adminUrl: string;
    template: string;
  }
}

export const TEMPLATE = "oracle_template";

/**
 * One real server for the whole run: the embedded one, or what TEST_DATABASE_URL names, or the embedded one of
 * another major version whose binaries TEST_POSTGRES_BINARIES names. Each test file gets a copy of a migrated
 * template.
 */
export default async function startServer(project: TestProject): Promise<() => Promise<void>> {
  const { adminUrl, stop } = await openServer();
  const template = `${TEMPLATE}_${process.pid}`;
  await administer(adminUrl, `CREATE DATABASE ${template} ENCODING 'UTF8' TEMPLATE template0`);
  const oracle = await connect({ databaseUrl: withDatabase(adminUrl, template) });
  await oracle.migrate();
  await oracle.close();
  project.provide("adminUrl", adminUrl);
  project.provide("template", template);
  return async () => {
    await administer(adminUrl, `DROP DATABASE IF EXISTS ${template}`);
    await stop();
  };
}

async function openServer(): Promise<{ adminUrl: string; stop: () => Promise<void> }> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) return { adminUrl: given, stop: async () => {} };
  const directory = mkdtempSync(join(tmpdir(), "oracle-worker-test-"));
  const binaries = process.env.TEST_POSTGRES_BINARIES;
  const embedded = await openEmbedded({
    directory,
    ...(binaries ? { binaries } : {}),
    // The tests kill workers, not this server; what survives a power cut is not their question.
    settings: { fsync: "off", max_connections: "300" },
  });
  return {
    adminUrl: embedded.adminUrl,
    stop: async () => {
      await embedded.release();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export async function administer(adminUrl: string, sql: string): Promise<void> {
  const client = new pg.Client(adminUrl);
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}
