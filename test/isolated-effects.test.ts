import { fileURLToPath } from "node:url";
import type { JobDefinition } from "oracle-worker";
import { beforeAll, describe, expect, it } from "vitest";
import { loadHandlers } from "../dist/handlers/load.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { rested } from "./support/run.js";

// Steps and effects of handlers in another thread or process, which ask their worker for each.

const db = useTestDatabase();
const here = (path: string) => fileURLToPath(new URL(`./support/effects/${path}`, import.meta.url));
let jobs: JobDefinition[];
beforeAll(async () => {
  jobs = [...(await loadHandlers(here("isolated.mjs"))), ...(await loadHandlers(here("isolated.json")))];
  await db.worker({ jobs, queues: ["isolated"] });
  await db.sql("CREATE TABLE public.notes (place text)");
});

const submit = async (type: string, input: object) =>
  (await db.oracle.enqueue(type, input, { queue: "isolated" })).id;
const resultOf = async (id: string) => (await db.oracle.result(id))?.payload;

describe.each(["thread", "process", "python"])("in a %s", (place) => {
  it("a retry gets what was remembered, and sends nothing again", async () => {
    const id = await submit(place, { how: "fails once" });
    expect(await rested(db, id)).toMatchObject({ state: "SUCCEEDED", attemptCount: 2 });
    const [effect] = await db.oracle.effects(id);
    expect(effect).toMatchObject({ state: "CONFIRMED", request: { to: "ada" }, dispatches: 1 });
    expect(await resultOf(id)).toEqual({
      drawn: { attempt: 1 },
      sent: { idempotencyKey: effect?.idempotencyKey, attempt: 1 },
    });
  });

  it("a plan waits for approval, and is then carried out", async () => {
    const id = await submit(`${place} plan`, { how: "plans" });
    expect(await rested(db, id)).toMatchObject({ state: "PENDING", holdReason: "awaiting approval" });
    expect(await db.oracle.effects(id)).toMatchObject([{ state: "PLANNED", dispatches: 0 }]);
    await db.oracle.approve(id);
    await until("the end", async () => (await db.oracle.get(id))?.state === "SUCCEEDED");
    expect(await db.oracle.effects(id)).toMatchObject([{ state: "CONFIRMED", dispatches: 1 }]);
  });

  it("SQL commits with the result, and a fault in it fails the attempt", async () => {
    const id = await submit(place, { how: "commits" });
    expect((await rested(db, id)).state).toBe("SUCCEEDED");
    expect(await db.sql("SELECT * FROM public.notes WHERE place = $1", [place])).toHaveLength(1);
    const faulty = await submit(place, { how: "commits twice" });
    expect(await rested(db, faulty)).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "EFFECT_CONFLICT" },
    });
  });
});

describe.each(["inline", "thread", "process", "python"])("handlers of the kind %s", (place) => {
  it("a step that is still open when the handler returns fails the attempt", async () => {
    const id = await submit(place, { how: "leaves a step open" });
    expect(await rested(db, id)).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "EFFECT_OPEN" } });
    // The next attempt in the same place is not disturbed.
    expect((await rested(db, await submit(place, { how: "returns" }))).state).toBe("SUCCEEDED");
  });
});

describe.each(["inline", "thread", "process", "python"])("handlers of the kind %s", (place) => {
  it("hear which field of a call is wrong", async () => {
    const id = await submit(place, { how: "names an artifact 5" });
    const attempts = await until("an attempt to end", async () => {
      const ended = (await db.oracle.attempts(id)).filter(({ status }) => status === "FAILED");
      return ended.length > 0 && ended;
    });
    expect(attempts[0]?.error).toMatchObject({ code: "INVALID_ARGUMENT", field: "name" });
  });

  it("keep artifacts and values of steps of several megabytes", async () => {
    const times = 350_001;
    const id = await submit(place, { how: "keeps much", times });
    expect(await rested(db, id)).toMatchObject({ state: "SUCCEEDED" });
    const size = 8 * times;
    expect(await resultOf(id)).toEqual({ size, bytes: size, same: true });
    const kept = (await db.oracle.artifacts(id)).filter(({ name }) => name.startsWith("large."));
    expect(kept.map((each) => each.mediaType).sort()).toEqual([
      "application/octet-stream",
      "text/plain; charset=utf-8",
    ]);
    expect(new Set(kept.map((each) => each.sha256)).size).toBe(1);
  });
});

describe.each(["process", "python"])("a child process, %s,", (place) => {
  it("that dies with a call under way leaves it in doubt", async () => {
    const again = await submit(place, { how: "dies" });
    expect(await rested(db, again)).toMatchObject({ state: "SUCCEEDED", attemptCount: 2 });
    expect(await db.oracle.effects(again)).toMatchObject([{ state: "CONFIRMED", dispatches: 2 }]);
    expect((await db.oracle.attempts(again))[0]?.cause).toBe("HANDLER_EXITED");

    const held = await submit(place, { how: "dies", kind: "unsafe" });
    expect(await rested(db, held)).toMatchObject({
      state: "FAILED_RETRYABLE",
      holdReason: "effect in doubt",
    });
    expect(await db.oracle.effects(held)).toMatchObject([{ state: "IN_DOUBT", dispatches: 1 }]);
  });
});

it.each(["thread", "process"])("a plan that is no list is named as what is wrong, in a %s", async (place) => {
  const id = await submit(`${place} plan`, { how: "plans nothing" });
  await until("its end", async () => (await db.oracle.get(id))?.error);
  expect((await db.oracle.get(id))?.error).toMatchObject({ code: "INVALID_ARGUMENT", field: "effects" });
});
