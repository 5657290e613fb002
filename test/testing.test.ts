import { defineJob } from "oracle-worker";
import { openTestOracle, type TestOracle } from "oracle-worker/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { echo, nap } from "./support/jobs.js";
import { useTestDatabase } from "./support/oracle.js";

/** Fails once and wants to wait a minute. */
const patient = defineJob({
  type: "patient",
  input: z.object({}),
  output: z.object({ attempt: z.number() }),
  backoff: { kind: "fixed", baseSeconds: 60 },
  run({ job }) {
    if (job.attemptNo === 1) throw new Error("not yet");
    return { attempt: job.attemptNo };
  },
});

/** Says something and leaves something. */
const talkative = defineJob({
  type: "talkative",
  input: z.object({}),
  output: z.object({ sha256: z.string() }),
  async run({ log, progress, artifact }) {
    log.info("working", { step: 1 });
    const { sha256 } = await artifact("prompt.txt", "x".repeat(10_000));
    progress(1, "done");
    return { sha256 };
  },
});

const db = useTestDatabase();
let test: TestOracle;
beforeAll(async () => {
  test = await openTestOracle({ jobs: [echo, nap, patient, talkative], databaseUrl: db.url });
});
afterAll(() => test.close());

describe("oracle-worker/testing", () => {
  it("runs a job inline", async () => {
    const { job, result, attempts } = await test.runJob(echo, { n: 5 });
    expect(job.state).toBe("SUCCEEDED");
    expect(result).toEqual({ n: 5 });
    expect(attempts).toHaveLength(1);
  });

  it("keeps what a job reports", async () => {
    const { job, attempts, result } = await test.runJob(talkative, {});
    expect(attempts).toMatchObject([{ progress: { fraction: 1, message: "done" } }]);
    expect(await test.oracle.logs(job.jobId)).toMatchObject([{ message: "working", fields: { step: 1 } }]);
    const [artifact] = await test.oracle.artifacts(job.jobId);
    expect(artifact).toMatchObject({ name: "prompt.txt", size: 10_000, ...(result as object) });
    const opened = await test.oracle.openArtifact(artifact?.sha256 ?? "");
    expect((await opened?.content.toArray())?.join("")).toBe("x".repeat(10_000));
  });

  it("lets time pass for retries and delays", async () => {
    const delayed = await test.oracle.enqueue(echo, { n: 1 }, { runAfter: 3600 });
    expect(await test.runReady()).toBe(0);
    await test.advance("59m");
    expect(await test.runReady()).toBe(0);
    await test.advance("2m");
    expect(await test.runReady()).toBe(1);
    expect((await test.look(delayed.id)).job.state).toBe("SUCCEEDED");

    const failed = await test.runJob(patient, {});
    expect(failed.job.state).toBe("FAILED_RETRYABLE");
    await test.advance("2m");
    await test.runReady();
    expect((await test.look(failed.job.jobId)).result).toEqual({ attempt: 2 });
  });

  it("lets deadlines pass", async () => {
    const job = await test.oracle.enqueue(
      echo,
      { n: 1 },
      { runAfter: 7200, deadline: new Date(Date.now() + 3_600_000) },
    );
    await test.advance("2h");
    await test.runReady();
    expect((await test.look(job.id)).job).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "DEADLINE_EXCEEDED" },
    });
  });

  it("tells what was enqueued", async () => {
    await test.oracle.enqueue(nap, { ms: 3 }, { queue: "told" });
    const jobs = await test.enqueued({ queue: "told" });
    expect(jobs.map(({ type, input }) => ({ type, input }))).toEqual([{ type: "nap", input: { ms: 3 } }]);
  });

  it("refuses a duration it does not understand", async () => {
    await expect(test.advance("soon")).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field: "duration" });
  });
});
