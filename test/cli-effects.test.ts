import { describe, expect, it } from "vitest";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { rested, startHandler } from "./support/run.js";

const db = useTestDatabase();
const cli = (...args: string[]) => runToEnd(args, { env: { DATABASE_URL: db.url } });
const asPerson = (...args: string[]) => runAsPerson(args, { env: { DATABASE_URL: db.url } });

/** A job with a step and an unsafe effect whose first call is not answered. */
async function inDoubt() {
  let calls = 0;
  return startHandler(db, async ({ step, effect }) => {
    const text = await step("write", () => "Dear \u001b[31m customer");
    const sent = await effect({ key: "mail", kind: "unsafe", request: { to: "ada", text } }, () => {
      if (++calls === 1) throw new Error("no answer");
      return "sent";
    });
    return { text, sent };
  });
}

describe("effects", () => {
  it("list shows what is in doubt, resolve settles it and lets the job go on", async () => {
    const { id, rested: held, stop } = await inDoubt();
    await held();
    const { json } = await cli("effects", "list", "--state", "IN_DOUBT");
    const items = json.items as Record<string, unknown>[];
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({
      job_id: id,
      name: "mail",
      kind: "unsafe",
      state: "IN_DOUBT",
      request: { to: "ada" },
      error: { message: "no answer" },
    });
    expect((await cli("effects", "list", "--job", id)).json.items).toEqual(items);
    const effect = items[0]?.effect_id as string;
    const resolved = await cli(
      ...["effects", "resolve", effect, "--outcome", "confirmed", "--evidence", "in the outbox"],
      ...["--response", '"message 7"'],
    );
    expect(resolved).toMatchObject({
      code: 0,
      json: {
        effect_id: effect,
        state: "CONFIRMED",
        response: "message 7",
        evidence: "in the outbox",
        hold_reason: null,
      },
    });
    expect((await rested(db, id)).state).toBe("SUCCEEDED");
    expect((await cli("jobs", "result", id)).json).toMatchObject({ sent: "message 7" });
    const again = await cli("effects", "resolve", effect, "--outcome", "failed", "--evidence", "x");
    expect(again).toMatchObject({ code: 3, error: { code: "JOB_PRECONDITION" } });

    const shown = await cli("jobs", "show", id);
    expect(shown.json).toMatchObject({
      steps: [{ name: "write", attempt_no: 1 }],
      effects: [{ name: "mail", state: "CONFIRMED" }],
    });
    const { stdout } = await asPerson("jobs", "show", id);
    expect(stdout).toMatch(/Steps\n.*STEP[^\n]*\n.*write/);
    expect(stdout).toMatch(/CONFIRMED\s+unsafe\s+mail/);
    expect(stdout).not.toContain("\u001b[31m");
    await stop();
  });

  it.each([
    [["effects", "resolve", "nonsense", "--outcome", "failed", "--evidence", "x"], 2, "INVALID_ARGUMENT"],
    [
      [
        "effects",
        "resolve",
        "00000000-0000-0000-0000-000000000000",
        "--outcome",
        "failed",
        "--evidence",
        "x",
      ],
      3,
      "EFFECT_NOT_FOUND",
    ],
    [
      ["effects", "resolve", "00000000-0000-0000-0000-000000000000", "--outcome", "maybe", "--evidence", "x"],
      2,
      "INVALID_ARGUMENT",
    ],
    [
      ["effects", "resolve", "00000000-0000-0000-0000-000000000000", "--outcome", "failed"],
      2,
      "INVALID_ARGUMENT",
    ],
    [
      [
        "effects",
        "resolve",
        "00000000-0000-0000-0000-000000000000",
        "--outcome",
        "failed",
        "--evidence",
        "x",
        "--response",
        "1",
      ],
      2,
      "INVALID_ARGUMENT",
    ],
    [["effects", "list", "--state", "OPEN"], 2, "INVALID_ARGUMENT"],
    [["approve", "00000000-0000-0000-0000-000000000000"], 3, "JOB_NOT_FOUND"],
    [["reject", "00000000-0000-0000-0000-000000000000"], 2, "INVALID_ARGUMENT"],
    [
      ["jobs", "replay", "00000000-0000-0000-0000-000000000000", "--from", "a", "--input", "1"],
      2,
      "INVALID_ARGUMENT",
    ],
  ])("%j ends with %d %s", async (args, code, error) => {
    expect(await cli(...(args as string[]))).toMatchObject({ code, error: { code: error } });
  });
});

describe("approve and reject", () => {
  it("decide about a planned job", async () => {
    const planned = () =>
      startHandler(
        db,
        async ({ plan, effect }) => {
          const mail = { key: "mail", kind: "idempotent", request: 1 } as const;
          await plan([mail]);
          return effect(mail, () => "sent");
        },
        { approve: "person" },
      );
    const [yes, no] = [await planned(), await planned()];
    await yes.rested();
    await no.rested();
    expect(await cli("approve", yes.id)).toMatchObject({ code: 0, json: { hold_reason: null } });
    await until("the end", async () => (await db.oracle.get(yes.id))?.state === "SUCCEEDED");
    expect(await cli("approve", yes.id)).toMatchObject({ code: 3, error: { code: "JOB_PRECONDITION" } });
    expect(await cli("reject", no.id, "--why", "not now")).toMatchObject({
      code: 0,
      json: { state: "FAILED_TERMINAL", error: { code: "PLAN_REJECTED", message: "not now" } },
    });
    await yes.stop();
    await no.stop();
  });
});

describe("replay --from", () => {
  it("reuses the steps before it", async () => {
    const runs: string[] = [];
    const {
      id,
      rested: ended,
      stop,
    } = await startHandler(db, async ({ step }) => {
      await step("a", () => runs.push("a"));
      return step("b", () => runs.push("b"));
    });
    await ended();
    const { json } = await cli("jobs", "replay", id, "--from", "b");
    expect(json).toMatchObject({ replay_of: id, created: true });
    expect((await rested(db, json.job_id as string)).state).toBe("SUCCEEDED");
    expect(runs).toEqual(["a", "b", "b"]);
    expect(await cli("jobs", "replay", id, "--from", "z")).toMatchObject({
      code: 2,
      error: { field: "from" },
    });
    await stop();
  });
});

describe("verify", () => {
  it("covers steps and effects, and names what was changed past oracle-worker", async () => {
    const {
      id,
      rested: ended,
      stop,
    } = await startHandler(db, async ({ step, effect, onCommit }) => {
      await step('odd "name" é', () => ({ b: 1, a: [1.5, null] }));
      await effect({ key: "mail", kind: "idempotent", request: { to: "x" } }, () => "sent");
      onCommit("note", "SELECT $1::int", [1]);
      return 7;
    });
    expect((await ended()).state).toBe("SUCCEEDED");
    await stop();
    const good = await cli("verify", id);
    expect(good).toMatchObject({ code: 0, json: { verified: true } });
    const names = (good.json.checks as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual([
      "spec_hash",
      'step "odd \\"name\\" é"',
      'request of effect "mail"',
      'response of effect "mail"',
      'request of effect "note"',
      'response of effect "note"',
      "content_hash",
      "provenance_hash",
    ]);
    const wrong = async () => {
      const { code, error } = await cli("verify", id);
      expect([code, error.code]).toEqual([1, "VERIFY_FAILED"]);
      return error.field;
    };
    const tamper = async (change: string, undo: string) => {
      // Past the triggers.
      await db.sql(`DO $$ BEGIN SET LOCAL session_replication_role = replica; ${change}; END $$`);
      const field = await wrong();
      await db.sql(`DO $$ BEGIN SET LOCAL session_replication_role = replica; ${undo}; END $$`);
      return field;
    };
    const step = `UPDATE oracle.steps SET value = '{"a": [1.5, null], "b": 1}' WHERE job_id = '${id}'`;
    expect(await tamper(`UPDATE oracle.steps SET value = '2' WHERE job_id = '${id}'`, step)).toBe(
      'step "odd \\"name\\" é"',
    );
    expect(
      await tamper(
        `UPDATE oracle.effects SET response = '"lost"' WHERE job_id = '${id}' AND name = 'mail'`,
        `UPDATE oracle.effects SET response = '"sent"' WHERE job_id = '${id}' AND name = 'mail'`,
      ),
    ).toBe('response of effect "mail"');
    expect(
      await tamper(
        `UPDATE oracle.jobs SET attempt_version = 'forged' WHERE job_id = '${id}'`,
        `UPDATE oracle.jobs SET attempt_version = (SELECT '${(await db.oracle.attempts(id))[0]?.handlerVersion}') WHERE job_id = '${id}'`,
      ),
    ).toBe("provenance_hash");
    expect((await cli("verify", id)).code).toBe(0);
    await db.sql("DELETE FROM oracle.effects WHERE job_id = $1 AND name = 'note'", [id]);
    expect(await wrong()).toBe("provenance_hash");
  });
});
