import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { PythonChild, pythonFolder, request } from "./support/python.js";

// python/oracle_worker.py as a worker meets it: real programs, real pipes, real signals.

const tasks = fileURLToPath(new URL("./support/tasks.py", import.meta.url));
const helper = join(pythonFolder, "oracle_worker.py");

describe("oracle_worker.py", () => {
  it("is Python 3.8 and imports nothing but the standard library", () => {
    const program = `
import ast, sys
tree = ast.parse(open(sys.argv[1]).read(), feature_version=(3, 8))
for node in ast.walk(tree):
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    names += [node.module] if isinstance(node, ast.ImportFrom) else []
    for name in names:
        print(name)
`;
    const names = execFileSync("python3", ["-c", program, helper], { encoding: "utf8" }).trim().split("\n");
    const standard = [
      ...[
        "__future__",
        "asyncio",
        "base64",
        "collections",
        "datetime",
        "itertools",
        "json",
        "os",
        "select",
        "signal",
        "sys",
      ],
      ...["threading", "time", "traceback", "typing"],
    ];
    expect([...new Set(names)].sort()).toEqual(standard);
  });

  it("lies where python-path says", async () => {
    const { stdout } = await runAsPerson(["python-path"]);
    expect(readdirSync(stdout.trim())).toContain("oracle_worker.py");
    expect((await runToEnd(["python-path"])).json).toEqual({ path: stdout.trim() });
  });

  it("refuses two handlers for one type", () => {
    const program = "from oracle_worker import job\njob('a')(print)\njob('a')(print)";
    const run = () =>
      execFileSync("python3", ["-c", program], {
        env: { ...process.env, PYTHONPATH: pythonFolder },
        stdio: "pipe",
      });
    expect(run).toThrow(/job type 'a' has two handlers/);
  });
});

describe("a warm child", () => {
  let child: PythonChild;
  beforeAll(() => {
    child = new PythonChild(tasks, { warm: true });
  });
  afterAll(async () => {
    expect(await child.end()).toBe(0);
  });
  const answer = async (type: string, input?: unknown) => (await child.answer(type, input)).at(-1);
  const errorOf = async (type: string, input?: unknown) =>
    ((await answer(type, input)) as { error: Record<string, unknown> }).error;

  it("serves job after job and repeats each attempt's id", async () => {
    for (const n of [1, 2, 3]) {
      expect(await child.answer("echo", { n, text: "größe" }, `attempt-${n}`)).toEqual([
        { attempt_id: `attempt-${n}`, ok: true, result: { n, text: "größe" } },
      ]);
    }
  });

  it("runs async handlers", async () => {
    expect(await answer("later", [1])).toMatchObject({ ok: true, result: { async: [1] } });
  });

  it("keeps what handlers print, write and start away from its answers, and its requests away from them", async () => {
    expect(await child.answer("noisy")).toEqual([
      { attempt_id: "attempt-1", ok: true, result: { stdin: "", child: "" } },
    ]);
    for (const text of ["printed while", "printed \\ud800", "written to 1", "said by a child"]) {
      await expect.poll(() => child.stderr).toContain(text);
    }
  });

  it("understands a request that comes in pieces, and one of a megabyte", async () => {
    const line = `${JSON.stringify(request("echo", "größe"))}\n`;
    for (const byte of Buffer.from(line)) child.stdin.write(Buffer.of(byte));
    expect(await child.next()).toMatchObject({ ok: true, result: "größe" });
    const large = "ü".repeat(500_000);
    expect(await answer("echo", large)).toMatchObject({ ok: true, result: large });
    expect(await answer("return", "large")).toMatchObject({ ok: true, result: "é".repeat(400_000) });
  });

  it("tells a handler what it needs to know", async () => {
    expect(await answer("facts")).toMatchObject({
      ok: true,
      result: {
        job_id: "job-1",
        job_type: "facts",
        attempt_id: "attempt-1",
        attempt_no: 2,
        tenant_id: "team-a",
        idempotency_key: "key-1",
        deadline: ["2030-01-02T03:04:05.678000+00:00", 0],
        same_input: true,
        cancelled: false,
      },
    });
    child.send({ ...request("facts"), deadline: null });
    expect(await child.next()).toMatchObject({ result: { deadline: null } });
  });

  it.each([
    ["plain", { class: "ValueError", message: "wrong \0 value", retryable: true }],
    ["retry", { class: "RetryableError", message: "busy", retryable: true, retry_after_seconds: 7.5 }],
    ["retry_never", { class: "RetryableError", message: "busy", retryable: true }],
    ["terminal", { class: "TerminalError", message: "hopeless", retryable: false }],
    ["base", { class: "OracleError", message: "of ours", retryable: true }],
    ["exit", { class: "SystemExit", message: "the handler called sys.exit(3)", retryable: true }],
    ["interrupt", { class: "KeyboardInterrupt", message: "KeyboardInterrupt", retryable: true }],
    ["memory", { class: "MemoryError", message: "MemoryError", retryable: true, code: "MEMORY_LIMIT" }],
    ["unprintable", { class: "Unprintable", message: "a Unprintable that cannot be shown", retryable: true }],
    ["half", { class: "ValueError", message: "half \ud800 a pair", retryable: true }],
    ["own_snooze", { class: "Snooze", message: "not what it seems", retryable: true }],
    ["empty", { class: "AssertionError", message: "AssertionError", retryable: true }],
  ])("raise %s becomes an error envelope", async (how, expected) => {
    const { traceback, ...error } = await errorOf("raise", how);
    expect(error).toEqual(expected);
    expect(traceback).toContain("tasks.py");
    expect(traceback).not.toContain("oracle_worker.py");
  });

  it("cuts long texts, tracebacks at their beginning", async () => {
    const { message, traceback } = await errorOf("raise", "long");
    expect(message).toBe("x".repeat(8000));
    expect(String(traceback)).toMatch(/^\[cut\] …x{7999}\n$/);
  });

  it.each(["nan", "infinity", "object", "bytes", "circle"])("returning %s is refused", async (what) => {
    const error = await errorOf("return", what);
    expect(error).toMatchObject({ code: "OUTPUT_REJECTED", retryable: false });
    expect(error.message).toMatch(/^The output cannot be written as JSON: .+\.$/);
  });

  it.each([
    ["none", null],
    ["half", "half \ud800 a pair"],
    ["tuple", [1, 2.5, true, "ü", { k: null }]],
  ])("returning %s is carried unchanged", async (what, expected) => {
    expect(await answer("return", what)).toMatchObject({ ok: true, result: expected });
  });

  it("snoozes past a handler's own except, and refuses what is no time", async () => {
    expect(await errorOf("snooze", 2.5)).toEqual({
      class: "Snooze",
      message: "snooze",
      retryable: true,
      retry_after_seconds: 2.5,
    });
    expect(await errorOf("snooze", -1)).toMatchObject({ class: "TerminalError", retryable: false });
  });

  it("says which types it has when it is asked for another, and which protocol it speaks", async () => {
    const error = await errorOf("unheard_of");
    expect(error).toMatchObject({ code: "HANDLERS_INVALID" });
    expect(error.message).toMatch(
      /tasks\.py has no handler for job type 'unheard_of'; it has 'echo', 'later'/,
    );
    child.send({ ...request("echo"), v: 2 });
    expect(await child.next()).toMatchObject({ ok: false, error: { code: "HANDLERS_INVALID" } });
  });

  it.each([
    ["step", "name", "step: name is 5; it must be a text."],
    ["effect", "kind", "effect: kind is 5; it must be a text."],
    ["artifact", "name", "artifact: name is None; it must be a text."],
    ["sql", "sql", "on_commit: sql is 5; it must be a text."],
    ["values", "values", "on_commit: values is 'x'; it must be a list."],
  ])("names what is wrong with a call: %s", async (how, field, message) => {
    expect(await errorOf("wrong", how)).toMatchObject({ code: "INVALID_ARGUMENT", field, message });
  });

  it("passes on progress and logs, also of what is no JSON", async () => {
    expect(await child.answer("talk")).toEqual([
      { progress: { fraction: 0.25 } },
      { progress: { fraction: 1, message: "most of it", details: { step: [1, 2] } } },
      {
        log: {
          level: "warn",
          message: "progress(nan) is ignored: the fraction must be a number from 0 to 1.",
        },
      },
      { usage: { tokens: 12, cost: 0 } },
      { usage: { tokens: 3, cost: 0.5 } },
      { log: { level: "info", message: "plain" } },
      { log: { level: "warn", message: "with fields", fields: { message: "a field", self: 1 } } },
      { log: { level: "error", message: "no JSON", fields: { thing: "<class 'object'>", number: "inf" } } },
      { attempt_id: "attempt-1", ok: true, result: "done" },
    ]);
  });

  it.each([
    ["text", { text: "größe", media_type: "text/plain" }],
    ["bytes", { base64: "AP8=" }],
    ["json", { json: { a: [1] } }],
  ])("an artifact of %s is answered with its reference", async (name, content) => {
    child.send(request("artifact", name));
    const { artifact } = (await child.next()) as { artifact: { id: number } };
    expect(artifact).toEqual({ id: expect.any(Number), name, ...content });
    const value = { artifact_id: "x", sha256: "y", size: 2 };
    child.send({ reply: artifact.id, ok: true, value });
    expect(await child.next()).toMatchObject({ ok: true, result: value });
  });

  it.each([
    [true, "RetryableError"],
    [false, "TerminalError"],
  ])("a refused artifact raises (retryable: %s)", async (retryable, name) => {
    child.send(request("artifact", "json"));
    const { artifact } = (await child.next()) as { artifact: { id: number } };
    child.send({ reply: artifact.id, ok: false, error: { class: "Error", message: "disk full", retryable } });
    expect(await child.next()).toMatchObject({ error: { class: name, message: "disk full", retryable } });
  });

  /** Plays the worker: answers each call with the next value, an Error as a refusal; returns what was said. */
  async function converse(type: string, input: unknown, ...values: unknown[]) {
    child.send(request(type, input));
    const said: Record<string, unknown>[] = [];
    for (const value of values) {
      const { id, ...call } = Object.values(await child.next())[0] as { id: number };
      said.push(call);
      child.send({
        reply: id,
        ...(value instanceof Error ? { ok: false, error: value } : { ok: true, value }),
      });
    }
    return { said, response: await child.next() };
  }
  const refusal = (code: string, retryable: boolean) =>
    Object.assign(new Error(), { class: "OracleError", code, message: "no", retryable });

  it("takes a step once and is told its value afterwards", async () => {
    const first = await converse("steps", 1, { known: false }, { drawn: 1 });
    expect(first.said).toEqual([{ name: "draw" }, { name: "draw", value: { drawn: 1 } }]);
    expect(first.response).toMatchObject({ result: { drawn: 1 } });
    const later = await converse("steps", 2, { known: true, value: { drawn: 1 } });
    expect(later).toMatchObject({ said: [{ name: "draw" }], response: { result: { drawn: 1 } } });
  });

  const intent = { name: "charge", kind: "reconcilable", request: { cents: 5 } };
  const send = { next: "send", idempotency_key: "k" };
  const ended = (outcome: string, rest: object) => ({ name: "charge", outcome, ...rest });
  it.each([
    [
      "sends it",
      {},
      [send, { key: "k" }],
      [intent, ended("confirmed", { response: { key: "k" } })],
      { result: { key: "k" } },
    ],
    ["does nothing twice", {}, [{ next: "done", response: 7 }], [intent], { result: 7 }],
    [
      "says that it did not happen",
      "fails",
      [send, null],
      [
        intent,
        ended("failed", { error: expect.objectContaining({ code: "EFFECT_FAILED", retryable: false }) }),
      ],
      { error: { class: "EffectFailed", code: "EFFECT_FAILED", retryable: false, retry_after_seconds: 3 } },
    ],
    [
      "says that it does not know",
      "breaks",
      [send, null],
      [intent, ended("in_doubt", { error: expect.objectContaining({ class: "ValueError" }) })],
      { error: { class: "ValueError", retryable: true } },
    ],
    [
      "says so of an answer that cannot be kept",
      "answers no JSON",
      [send, null],
      [intent, ended("in_doubt", { error: expect.objectContaining({ class: "TypeError" }) })],
      { error: { class: "TypeError" } },
    ],
    [
      "asks its lookup, which found it",
      { happened: true },
      [{ ...send, next: "look_up" }, { asked: "k" }],
      [intent, ended("confirmed", { response: { asked: "k" } })],
      { result: { asked: "k" } },
    ],
    [
      "asks its lookup, which did not find it, and sends it",
      { happened: false },
      [{ ...send, next: "look_up" }, null, send, { key: "k" }],
      [
        intent,
        ended("failed", { error: expect.anything() }),
        intent,
        ended("confirmed", { response: { key: "k" } }),
      ],
      { result: { key: "k" } },
    ],
    [
      "asks its lookup, which cannot tell",
      { happened: "unknown" },
      [{ ...send, next: "look_up" }, refusal("EFFECT_IN_DOUBT", true)],
      [intent, ended("unknown", {})],
      { error: { code: "EFFECT_IN_DOUBT", message: "no", retryable: true } },
    ],
    [
      "passes on that it is refused",
      {},
      [refusal("EFFECT_CONFLICT", false)],
      [intent],
      { error: { class: "TerminalError", code: "EFFECT_CONFLICT", message: "no", retryable: false } },
    ],
    ["needs a lookup", "no lookup", [], [], { error: { class: "TerminalError" } }],
  ])("with an effect, %s", async (_what, input, replies, said, response) => {
    const talk = await converse("effects", input, ...replies);
    expect(talk.said).toEqual(said);
    expect(talk.response).toMatchObject(response);
  });

  it("gives each thread of a handler its own reply, in whatever order they come", async () => {
    child.send(request("artifacts_in_threads", 4));
    const calls: { id: number; json: number }[] = [];
    while (calls.length < 4) calls.push(((await child.next()) as { artifact: (typeof calls)[0] }).artifact);
    for (const { id, json } of calls.reverse()) child.send({ reply: id, ok: true, value: { n: json } });
    expect(await child.next()).toMatchObject({ result: [{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }] });
  });

  it("does not let a thread that outlived its attempt speak for the next", async () => {
    expect(await answer("leaves_a_thread")).toMatchObject({ result: "left" });
    expect(await child.answer("wakes_the_thread", null, "attempt-2")).toEqual([
      { attempt_id: "attempt-2", ok: true, result: "woken" },
    ]);
    const says = "artifact() got no reply before the end of its attempt. True its attempt has ended\n";
    await expect.poll(() => child.stderr).toContain(says);
  });

  it("does not lose the next request to a thread that still waits for a reply", async () => {
    const [call, response] = await child.answer("leaves_a_call");
    expect(call).toMatchObject({ artifact: { name: "unanswered" } });
    expect(response).toMatchObject({ result: "left" });
    expect(await child.answer("echo", 1, "attempt-2")).toMatchObject([
      { attempt_id: "attempt-2", result: 1 },
    ]);
    await expect.poll(() => child.stderr).toContain("in its thread: artifact() got no reply");
  });

  it("lets processes that a handler forks be terminated", async () => {
    expect(await answer("forks")).toMatchObject({ ok: true, result: -15 });
  });

  it("takes a handler that cancels itself for one that failed", async () => {
    expect(await errorOf("cancels_itself")).toMatchObject({ class: "CancelledError", retryable: true });
  });
});

describe("told to end", () => {
  const started = async (type: string, input?: unknown) => {
    const child = new PythonChild(tasks, { warm: true });
    child.send(request(type, input));
    expect(await child.next()).toEqual({ progress: { fraction: 0 } });
    return child;
  };
  const cancel = { cancel: { attempt_id: "attempt-1", reason: "JOB_CANCELLED" } };
  const cancelled = { class: "Cancelled", message: "told to end: JOB_CANCELLED", retryable: true };

  it.each([
    ["polls", { result: { reason: "JOB_CANCELLED" } }],
    ["waits", { result: { cancelled: true, reason: "JOB_CANCELLED" } }],
    ["checks", { error: cancelled }],
  ])("by a line, a handler that %s ends, and the next job is served", async (type, expected) => {
    const child = await started(type, 60);
    child.send(cancel);
    expect(await child.next()).toMatchObject(expected);
    expect(await child.answer("checks_once", null, "attempt-2")).toMatchObject([
      { result: { cancelled: false } },
    ]);
    expect(await child.end()).toBe(0);
  });

  it("by a line, an async handler is cancelled as asyncio does it", async () => {
    const child = await started("sleeps_async");
    child.send(cancel);
    expect(await child.next()).toEqual({ log: { level: "info", message: "cleaning up" } });
    expect(await child.next()).toMatchObject({ ok: false, error: cancelled });
    expect(await child.end()).toBe(0);
  });

  it("waits its time when nobody tells it", async () => {
    const child = await started("waits", 0.05);
    expect(await child.next()).toMatchObject({ result: { cancelled: false, reason: null } });
    expect(await child.end()).toBe(0);
  });

  it("heeds a cancel that comes with its request, and not one for another attempt", async () => {
    const child = new PythonChild(tasks, { warm: true });
    child.send(request("checks_once"), cancel);
    expect(await child.next()).toMatchObject({ attempt_id: "attempt-1", result: { cancelled: true } });
    child.send(cancel, request("checks_once", null, "attempt-2"), cancel);
    expect(await child.next()).toMatchObject({ attempt_id: "attempt-2", result: { cancelled: false } });
    expect(await child.end()).toBe(0);
  });

  it.each([
    ["polls", { result: { reason: "SIGTERM" } }],
    ["waits", { result: { cancelled: true, reason: "SIGTERM" } }],
    ["sleeps_async", { error: { class: "Cancelled", message: "told to end: SIGTERM" } }],
  ])("by SIGTERM, a handler that %s answers, then the program ends", async (type, expected) => {
    const child = await started(type, 60);
    child.process.kill("SIGTERM");
    let said = await child.next();
    if ("log" in said) said = await child.next();
    expect(said).toMatchObject(expected);
    expect(await child.next()).toEqual({ leaving: true });
    expect(await child.ended).toBe(0);
  });

  it("by SIGTERM without a job it says so and ends at once", async () => {
    const child = new PythonChild(tasks, { warm: true });
    await child.answer("echo");
    child.process.kill("SIGTERM");
    expect(await child.next()).toEqual({ leaving: true });
    expect(await child.ended).toBe(0);
  });

  it.each(["polls", "waits", "sleeps_async"])(
    "a handler that %s hears that its worker is gone",
    async (type) => {
      const child = await started(type, 60);
      expect(await child.end()).toBe(0);
    },
  );
});

describe("a one-shot child", () => {
  const shoot = async (type: string, input?: unknown) => {
    const child = new PythonChild(tasks, { warm: false });
    child.stdin.end(JSON.stringify(request(type, input), null, 2));
    const response = await child.next();
    return { response, code: await child.ended, stderr: child.stderr };
  };

  it("answers one document and exits 0", async () => {
    expect(await shoot("echo", { n: 1 })).toMatchObject({
      code: 0,
      response: { attempt_id: "attempt-1", ok: true, result: { n: 1 } },
    });
    expect(await shoot("later", 5)).toMatchObject({ code: 0, response: { result: { async: 5 } } });
  });

  it("exits 1 on failure, with an envelope that says the same", async () => {
    expect(await shoot("raise", "terminal")).toMatchObject({
      code: 1,
      response: { ok: false, error: { class: "TerminalError", retryable: false } },
    });
  });

  it("writes progress and logs to stderr as text, and answers with what it used", async () => {
    const { code, response, stderr } = await shoot("talk");
    expect({ code, response }).toMatchObject({ code: 0, response: { result: "done" } });
    expect(response).toMatchObject({ usage: { tokens: 15, cost: 0.5 } });
    expect(stderr.split("\n")).toEqual([
      "printed while the program was loaded",
      "progress 25%",
      "progress 100% most of it",
      "warn progress(nan) is ignored: the fraction must be a number from 0 to 1.",
      "info plain",
      "warn with fields message='a field' self=1",
      "error no JSON thing=\"<class 'object'>\" number='inf'",
      "",
    ]);
  });

  it.each(["artifact", "steps", "effects"])("says that %s need a warm child", async (type) => {
    const { code, response } = await shoot(type, type === "artifact" ? "json" : {});
    expect(code).toBe(1);
    expect(response).toMatchObject({
      error: { class: "TerminalError", message: expect.stringMatching(/only a warm child/) },
    });
  });

  it("is told to end by SIGTERM", async () => {
    const child = new PythonChild(tasks, { warm: false });
    child.stdin.end(JSON.stringify(request("waits", 60)));
    await expect.poll(() => child.stderr).toContain("progress 0%");
    child.process.kill("SIGTERM");
    expect(await child.next()).toMatchObject({ result: { cancelled: true, reason: "SIGTERM" } });
    expect(await child.ended).toBe(0);
  });
});
