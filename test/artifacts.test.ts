import { existsSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { connect, createWorker, defineJob, type JobContext } from "oracle-worker";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { ArtifactStore } from "../dist/artifacts/store.js";
import { canonicalJson, sha256Hex } from "../dist/core/hash.js";
import type { Lease } from "../dist/core/job.js";
import { recordArtifact } from "../dist/store/artifact.js";
import type { Database } from "../dist/store/database.js";
import { reclaim } from "../dist/store/reclaim.js";
import { settle } from "../dist/store/settle.js";
import { verifyJob } from "../dist/verify.js";
import { ArtifactKeeper } from "../dist/worker/keep-artifact.js";
import { claimFrom, expireLease, workerDatabase } from "./support/leases.js";
import { useLogins } from "./support/logins.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { startS3 } from "./support/s3.js";

// Artifacts from the handler's context to their rows and bytes, and back.

const db = useTestDatabase();
const login = useLogins(db);
let sql: Database;
let store: ArtifactStore;
beforeAll(async () => {
  sql = workerDatabase(db);
  store = await db.oracle.artifactStore();
});
afterAll(() => sql.close());

let queues = 0;
const newQueue = () => `artifacts-${queues++}`;

async function running(tenant = "default"): Promise<Lease> {
  const queue = newQueue();
  await db.oracle.enqueue("any", {}, { queue, tenant });
  return (await claimFrom(sql, queue)).leases[0] as Lease;
}

/** Runs one handler in a worker until its job has ended. */
async function runOnce(run: (context: JobContext<unknown>) => unknown): Promise<string> {
  const queue = newQueue();
  const definition = defineJob({
    type: `once-${queue}`,
    input: z.any(),
    output: z.any(),
    backoff: { kind: "fixed", baseSeconds: 0.05 },
    run,
  });
  const worker = await db.worker({ jobs: [definition], queues: [queue] });
  const job = await db.oracle.enqueue(definition, null, { queue });
  await db.oracle.wait(job.id, { timeoutSeconds: 20 });
  await worker.stop();
  return job.id;
}

async function read(idOrSha256: string): Promise<Buffer> {
  const opened = await db.oracle.openArtifact(idOrSha256);
  const parts: Buffer[] = [];
  for await (const part of opened?.content ?? []) parts.push(part);
  return Buffer.concat(parts);
}

/** Files of bytes that the folder holds. */
function files(): string[] {
  return (readdirSync(db.artifacts, { recursive: true }) as string[]).filter((path) => path.includes("."));
}
const rowsOf = (jobId: string) =>
  db.sql("SELECT reference, artifact_payload FROM oracle.artifacts WHERE job_id = $1 ORDER BY artifact_id", [
    jobId,
  ]);
const text = (length: number, letter = "x") => letter.repeat(length);

describe("context.artifact", () => {
  it("keeps JSON, texts, bytes and streams, with their digests and media types", async () => {
    const json = { b: [1, 2.5], a: "ä" };
    const bytes = new Uint8Array([0, 255, 10]);
    let kept: unknown[] = [];
    const id = await runOnce(async ({ artifact }) => {
      kept = [
        await artifact("answer.json", json),
        await artifact("notes", "plain text, ä"),
        await artifact("image", bytes, { mediaType: "image/png" }),
        await artifact("stream", Readable.from([Buffer.from("in "), Buffer.from("parts")])),
      ];
      return kept;
    });
    const artifacts = await db.oracle.artifacts(id);
    expect(
      artifacts.map(({ name, type, mediaType, attemptNo }) => [name, type, mediaType, attemptNo]),
    ).toEqual([
      ["answer.json", "json", "application/json", 1],
      ["notes", "text", "text/plain; charset=utf-8", 1],
      ["image", "bytes", "image/png", 1],
      ["stream", "bytes", "application/octet-stream", 1],
    ]);
    const contents = ['{"a":"ä","b":[1,2.5]}', "plain text, ä", bytes, "in parts"].map((each) =>
      Buffer.from(each),
    );
    for (const [index, content] of contents.entries()) {
      const { artifactId, sha256, size } = artifacts[index] as (typeof artifacts)[0];
      expect(kept[index]).toEqual({ artifact_id: artifactId, sha256, size });
      expect([sha256, size]).toEqual([sha256Hex(content), content.length]);
      expect(await read(artifactId)).toEqual(content);
      expect(await read(sha256)).toEqual(content);
    }
    expect((await db.oracle.result(id))?.payload).toEqual(kept);
  });

  it("puts JSON up to 8 KiB into the row and the rest into the store", async () => {
    const lease = await running();
    const keeper = new ArtifactKeeper(sql, store);
    await keeper.keep(lease, "small", { text: text(8192 - 11) });
    await keeper.keep(lease, "large", { text: text(8192 - 10) });
    await keeper.keep(lease, "text", "short, but no JSON");
    const rows = await rowsOf(lease.jobId);
    expect(
      rows.map(({ reference, artifact_payload }) => [reference !== null, artifact_payload !== null]),
    ).toEqual([
      [false, true],
      [true, false],
      [true, false],
    ]);
    expect(canonicalJson(rows[0]?.artifact_payload).length).toBe(8192);
    expect(rows.slice(1).every(({ reference }) => existsSync(join(db.artifacts, reference)))).toBe(true);
  });

  it("keeps the same bytes once per tenant, and a tenant's to itself", async () => {
    const before = files().length;
    const keeper = new ArtifactKeeper(sql, store);
    const leases = [await running("a"), await running("a"), await running("b")];
    for (const lease of leases) await keeper.keep(lease, "same", text(10_000, "s"));
    await keeper.keep(leases[0] as Lease, "streamed", Readable.from([Buffer.from(text(10_000, "s"))]));
    const references = (await Promise.all(leases.map(({ jobId }) => rowsOf(jobId)))).flat();
    expect(references).toHaveLength(4);
    expect(new Set(references.map(({ reference }) => reference)).size).toBe(2);
    expect(files().length).toBe(before + 2);
  });

  it.each([
    ["name", "", undefined],
    ["name", text(201), undefined],
    ["name", 7 as unknown as string, undefined],
    ["mediaType", "fine", "text"],
    ["mediaType", "fine", "text/html\r\nSet-Cookie: x"],
    ["mediaType", "fine", `text/${text(200)}`],
  ])("refuses a wrong %s: %j %j", async (field, name, mediaType) => {
    const keeper = new ArtifactKeeper(sql, store);
    await expect(keeper.keep(await running(), name, "x", mediaType)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      field,
    });
  });

  it("refuses JSON that would not come back unchanged", async () => {
    const keeper = new ArtifactKeeper(sql, store);
    const odd = { n: 1n } as never;
    await expect(keeper.keep(await running(), "odd", odd)).rejects.toMatchObject({
      code: "PAYLOAD_REJECTED",
    });
  });

  it("that nobody waits for is kept all the same, counts in the provenance, and harms nobody", async () => {
    const id = await runOnce(({ artifact }) => {
      void artifact("", "a wrong name");
      void artifact("unwaited", text(9000, "u"));
      return "done";
    });
    expect((await db.oracle.get(id))?.state).toBe("SUCCEEDED");
    expect((await db.oracle.artifacts(id)).map(({ name }) => name)).toEqual(["unwaited"]);
    const { checks } = await verifyJob(db.oracle, id);
    expect(checks.map(({ name, matches }) => [name, matches])).toContainEqual(["provenance_hash", true]);
  });

  it("after its attempt has ended is refused", async () => {
    let late: Promise<unknown> | undefined;
    await runOnce(({ artifact }) => {
      setTimeout(() => {
        late = artifact("late", "x");
      }, 200);
      return "done";
    });
    const refused = await until("the late call", async () => late?.catch((error: unknown) => error));
    expect(refused).toMatchObject({ code: "LEASE_LOST" });
  });

  it("goes to a bucket where ARTIFACTS names one", async () => {
    const server = await startS3();
    for (const [name, value] of Object.entries(server.env)) vi.stubEnv(name, value);
    const oracle = await connect({ databaseUrl: db.url, artifacts: `s3://${server.bucket}/e2e` });
    const queue = newQueue();
    const definition = defineJob({
      type: "bucket",
      input: z.any(),
      output: z.any(),
      run: ({ artifact }) => artifact("in-a-bucket", text(9000, "b")),
    });
    const worker = await createWorker(oracle, { jobs: [definition], queues: [queue] });
    const job = await oracle.enqueue(definition, null, { queue });
    const { artifact_id: id } = (await job.result({ timeoutSeconds: 20 })) as { artifact_id: string };
    const [row] = await rowsOf(job.id);
    expect(existsSync(server.fileOf(`e2e/${row?.reference}`))).toBe(true);
    const opened = await oracle.openArtifact(id);
    expect((await opened?.content.toArray())?.join("")).toBe(text(9000, "b"));
    await worker.stop();
    await oracle.close();
    await server.stop();
    vi.unstubAllEnvs();
  });
});

describe("the fence", () => {
  it("refuses an attempt that has lost its job, and one that has ended", async () => {
    const keeper = new ArtifactKeeper(sql, store);
    const lost = await running();
    await expireLease(db, lost.jobId);
    await reclaim(sql, { workerId: "other", queues: [lost.queue], leaseSeconds: 60, versions: {}, limit: 1 });
    const ended = await running();
    await settle(sql, [{ lease: ended, outcome: { kind: "cancelled" } }]);
    for (const lease of [lost, ended]) {
      for (const content of [{ small: "json" }, text(9000), Readable.from([Buffer.from("stream")])]) {
        await expect(keeper.keep(lease, "late", content)).rejects.toMatchObject({ code: "LEASE_LOST" });
      }
      expect(await rowsOf(lease.jobId)).toEqual([]);
    }
  });

  it("refuses one whose outcome is being written at this moment", async () => {
    const lease = await running();
    let late: Promise<unknown> | undefined;
    await sql.transaction(async (client) => {
      await client.query({
        text: "SELECT oracle.settle_succeeded(ARRAY[$1::uuid], ARRAY[$2::uuid], '{1}', '{h}', '{t}', '{}')",
        values: [lease.jobId, lease.attemptId],
      });
      late = new ArtifactKeeper(sql, store).keep(lease, "late", { a: 1 });
      late.catch(() => {});
      await until("the record to wait", async () => {
        const waiting = await db.sql(
          "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%record_artifact%'",
        );
        return waiting.length > 0;
      });
    });
    await expect(late).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await rowsOf(lease.jobId)).toEqual([]);
  });

  it("refuses a forged attempt in raw SQL as the worker", async () => {
    const lease = await running();
    const other = await running();
    const record = (jobId: string, attemptId: string) =>
      db.as(
        "worker",
        `SELECT oracle.record_artifact(gen_random_uuid(), $1, $2, 'json', 'n', 'a/b', repeat('0', 64), 1, NULL, '1') AS became`,
        [jobId, attemptId],
      );
    for (const attemptId of [other.attemptId, "01a1e0ed-0000-7000-8000-000000000000"]) {
      expect(await record(lease.jobId, attemptId)).toEqual([{ became: "lost" }]);
    }
    expect(await rowsOf(lease.jobId)).toEqual([]);
    expect(await record(lease.jobId, lease.attemptId)).toEqual([{ became: "recorded" }]);
  });

  it("refuses a row that names another tenant's bytes, or bytes of another digest", async () => {
    const [theirs, ours] = [await running("theirs"), await running("ours")];
    const { reference, sha256, size } = await store.put(theirs.tenantId, Buffer.from("secret"));
    const about = { artifactId: theirs.jobId, type: "bytes", name: "n", mediaType: "a/b", size } as const;
    const record = (lease: Lease, digest: string) =>
      recordArtifact(sql, lease, { ...about, sha256: digest, reference });
    await expect(record(ours, sha256)).rejects.toMatchObject({ constraint: "reference_is_own" });
    await expect(record(theirs, sha256Hex("other"))).rejects.toMatchObject({
      constraint: "reference_is_own",
    });
    expect(await record(theirs, sha256)).toBe("recorded");
    // The reply was lost, and the call comes again.
    expect(await record(theirs, sha256)).toBe("recorded");
    expect(await rowsOf(theirs.jobId)).toHaveLength(1);
  });

  it("shows a tenant its own artifacts and logs only", async () => {
    const lease = await running("seen");
    await new ArtifactKeeper(sql, store).keep(lease, "n", { a: 1 });
    await db.sql("INSERT INTO oracle.attempt_logs VALUES ($1, now(), $2, 1, 'info', 'seen', 'm', NULL)", [
      lease.jobId,
      lease.attemptNo,
    ]);
    const count = async (client: pg.Client, table: string) =>
      (await client.query(`SELECT 1 FROM oracle.${table} WHERE job_id = $1`, [lease.jobId])).rowCount;
    for (const [tenant, rows] of [
      ["seen", 1],
      ["another", 0],
    ] as const) {
      const client = await (await login({ tenantId: tenant })).connect();
      for (const table of ["artifacts", "attempt_logs"]) {
        expect(await count(client, table), `${table} as ${tenant}`).toBe(rows);
      }
    }
  });
});

describe("bytes come before their row", () => {
  it("a store that is gone fails the attempt with a code, leaves no row, and the retry succeeds", async () => {
    const away = `${db.artifacts}-away`;
    const id = await runOnce(async ({ artifact, job }) => {
      if (job.attemptNo === 1) {
        renameSync(db.artifacts, away);
        writeFileSync(db.artifacts, "no folder");
      } else {
        rmSync(db.artifacts);
        renameSync(away, db.artifacts);
      }
      return artifact("report", text(9000, "r"));
    });
    const [first, second] = await db.oracle.attempts(id);
    expect(first).toMatchObject({ status: "FAILED", cause: "ARTIFACT_STORE", error: { retryable: true } });
    expect(second?.status).toBe("SUCCEEDED");
    expect((await db.oracle.artifacts(id)).map(({ attemptNo }) => attemptNo)).toEqual([2]);
  });

  it("a row whose bytes are gone, and bytes that were changed, are named when they are read", async () => {
    const lease = await running();
    const keeper = new ArtifactKeeper(sql, store);
    const { artifact_id: forged } = await keeper.keep(lease, "forged", text(9000, "f"));
    const { artifact_id: missing } = await keeper.keep(lease, "missing", text(9000, "m"));
    const { artifact_id: inline } = await keeper.keep(lease, "inline", { n: 1 });
    const [first, second] = await rowsOf(lease.jobId);
    writeFileSync(join(db.artifacts, first?.reference), "forged");
    await store.remove(second?.reference);
    await db.sql("UPDATE oracle.artifacts SET artifact_payload = '{\"n\": 2}' WHERE artifact_id = $1", [
      inline,
    ]);
    await expect(read(forged)).rejects.toMatchObject({ code: "VERIFY_FAILED" });
    await expect(read(missing)).rejects.toMatchObject({ code: "ARTIFACT_STORE" });
    await expect(read(inline)).rejects.toMatchObject({ code: "VERIFY_FAILED" });
  });

  it("is found by id or digest only", async () => {
    expect(await db.oracle.openArtifact("01a1e0ed-0000-7000-8000-000000000000")).toBeUndefined();
    expect(await db.oracle.openArtifact(sha256Hex("never stored"))).toBeUndefined();
    await expect(db.oracle.openArtifact("../x")).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });
});

describe("collection of orphans", () => {
  const age = (reference: string) => {
    const at = Date.now() / 1000 - 3700;
    utimesSync(join(db.artifacts, reference), at, at);
  };

  it("removes bytes without a row, and those whose last row was pruned", async () => {
    const keeper = new ArtifactKeeper(sql, store);
    const [lease, twin] = [await running(), await running()];
    await keeper.keep(lease, "kept", text(9000, "k"));
    await keeper.keep(twin, "kept", text(9000, "k"));
    await keeper.keep(lease, "pruned", text(9000, "p"));
    const [kept, pruned] = (await rowsOf(lease.jobId)).map(({ reference }) => reference);
    const { reference: orphan } = await store.put("default", Buffer.from("orphan"));
    for (const reference of [kept, pruned, orphan]) age(reference);
    await db.oracle.collectArtifacts();
    expect(await Promise.all([kept, pruned, orphan].map((one) => store.has(one)))).toEqual([
      true,
      true,
      false,
    ]);
    await db.sql("DELETE FROM oracle.artifacts WHERE job_id = $1", [lease.jobId]);
    expect(await db.oracle.collectArtifacts()).toBe(1);
    expect(await Promise.all([kept, pruned].map((one) => store.has(one)))).toEqual([true, false]);
  });

  it("never takes bytes that a new artifact has just come to share", async () => {
    const keeper = new ArtifactKeeper(sql, store);
    const [old, young] = [await running(), await running()];
    await keeper.keep(old, "old", text(9000, "o"));
    const [row] = await rowsOf(old.jobId);
    age(row?.reference);
    // The old row is pruned while the new one copies its reference.
    let pruned: Promise<unknown> | undefined;
    await sql.transaction(async (client) => {
      await client.query({
        text: "SELECT oracle.record_artifact($1, $2, $3, 'text', 'young', 'text/plain', $4, 9000, NULL, NULL)",
        values: [young.jobId, young.jobId, young.attemptId, sha256Hex(text(9000, "o"))],
      });
      pruned = db.sql("DELETE FROM oracle.artifacts WHERE job_id = $1", [old.jobId]);
      await until("the pruning to wait", async () => {
        const waiting = await db.sql(
          "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DELETE FROM oracle.artifacts%'",
        );
        return waiting.length > 0;
      });
    });
    await pruned;
    await db.oracle.collectArtifacts();
    expect(await store.has(row?.reference)).toBe(true);
    const [shared] = await db.oracle.artifacts(young.jobId);
    expect((await read(shared?.artifactId as string)).toString()).toBe(text(9000, "o"));
  });
});
