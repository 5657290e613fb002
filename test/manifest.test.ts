import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { loadHandlers } from "../dist/handlers/load.js";
import { validate } from "../dist/handlers/validate.js";

// Manifests of executables: what they may say, and what an error tells its author.

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "oracle-worker-"));
});

const write = (name: string, content: unknown) => {
  const path = join(folder, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
};
const job = { type: "score", executable: ["python3", "tasks.py"] };
const load = (...jobs: unknown[]) => loadHandlers(write("handlers.json", { jobs }));

describe("a manifest", () => {
  it("defines a job that is a program", async () => {
    const [definition, bare] = await load(
      {
        ...job,
        warm: 2,
        timeoutSeconds: 60,
        hosts: ["api.example"],
        env: ["MODEL_DIR"],
        memoryMb: 512,
        cpuSeconds: 10,
        version: "v7",
        backoff: { kind: "linear", baseSeconds: 1 },
      },
      { ...job, type: "bare" },
    );
    expect(definition).toMatchObject({
      type: "score",
      isolation: "process",
      timeoutSeconds: 60,
      version: "v7",
      backoff: { kind: "linear", baseSeconds: 1, capSeconds: 3600 },
      module: undefined,
      process: {
        executable: job.executable,
        warm: 2,
        env: ["MODEL_DIR"],
        memoryMb: 512,
        cpuSeconds: 10,
        cwd: folder,
      },
    });
    expect(bare).toMatchObject({
      timeoutSeconds: 3600,
      process: { executable: job.executable, cwd: folder },
    });
    expect(await validate(bare?.input as never, { any: [1] }, "INPUT_INVALID")).toEqual({ any: [1] });
  });

  it("finds programs beside it, and leaves others to PATH", async () => {
    for (const name of ["run.sh", "bare"]) chmodSync(write(name, "#!/bin/sh\n"), 0o755);
    const jobs = [["./run.sh", "--flag"], ["bare"], ["python3"], ["/bin/sh"]];
    const loaded = await load(...jobs.map((executable, n) => ({ type: `job ${n}`, executable })));
    expect(loaded.map(({ process }) => process.executable)).toEqual([
      [join(folder, "run.sh"), "--flag"],
      [join(folder, "bare")],
      ["python3"],
      ["/bin/sh"],
    ]);
  });

  it("has a version that changes with the command and with the files it names, and with nothing else", async () => {
    const version = async (...executable: string[]) => (await load({ type: "a", executable }))[0]?.version;
    write("tasks.py", "one");
    const first = await version("python3", "tasks.py");
    write("other.py", "x");
    expect(await version("python3", "tasks.py")).toBe(first);
    write("tasks.py", "two");
    const second = await version("python3", "tasks.py");
    const third = await version("python3", "tasks.py", "-v");
    expect(new Set([first, second, third]).size).toBe(3);
    folder = mkdtempSync(join(tmpdir(), "oracle-worker-"));
    write("tasks.py", "two");
    expect(await version("python3", "tasks.py")).toBe(second);
  });

  it.each([
    ["a text in place of a job", ["score"], "jobs[0]", /it must be an object with type and executable/],
    ["no type", [{ executable: ["a"] }], "jobs[0].type", /jobs\[0\]: type is missing/],
    ["no executable", [{ type: "a" }], "jobs[0].executable", /jobs\[0\] \("a"\): executable is missing/],
    [
      "an unknown key",
      [{ ...job, wram: 2 }],
      "jobs[0].wram",
      /wram is unknown; it may have type, executable, warm/,
    ],
    [
      "a wrong warm",
      [job, { ...job, type: "b", warm: "2" }],
      "jobs[1].warm",
      /\("b"\): warm is '2'; it must be a whole/,
    ],
    [
      "one text for executable",
      [{ ...job, executable: "a b" }],
      "jobs[0].executable",
      /must be a list: program/,
    ],
    ["an empty executable", [{ ...job, executable: [] }], "jobs[0].executable", /must be a list: program/],
    [
      "a program that is missing",
      [{ ...job, executable: ["./no"] }],
      "jobs[0].executable",
      /no does not exist/,
    ],
    ["a wrong type", [{ ...job, type: 7 }], "jobs[0].type", /type is 7; it must be a name/],
    ["a wrong version", [{ ...job, version: 7 }], "jobs[0].version", /version is 7; it must be a text/],
    [
      "wrong env",
      [{ ...job, env: { A: "b" } }],
      "jobs[0].env",
      /env is { A: 'b' }; it must be a list of names/,
    ],
    ["wrong hosts", [{ ...job, hosts: "a" }], "jobs[0].hosts", /hosts must be a list of host names/],
    [
      "a wrong backoff",
      [{ ...job, backoff: { kind: "never" } }],
      "jobs[0].backoff",
      /kind \(exponential, linear/,
    ],
    [
      "a wrong time",
      [{ ...job, backoff: { capSeconds: -1 } }],
      "jobs[0].backoff",
      /baseSeconds and capSeconds/,
    ],
    ["a misspelt keyword", [{ ...job, input: { requird: [] } }], "jobs[0].input", /no JSON Schema.*requird/],
    ["no schema", [{ ...job, output: "text" }], "jobs[0].output", /output must be a JSON Schema/],
    [
      "a reference to elsewhere",
      [{ ...job, input: { $ref: "https://a/b" } }],
      "jobs[0].input",
      /can't resolve/,
    ],
    ["an asynchronous schema", [{ ...job, input: { $async: true } }], "jobs[0].input", /\$async/],
    ["a type twice", [job, { ...job, warm: 1 }], "jobs[1].type", /jobs\[0\] is "score" already/],
  ])("with %s is refused", async (_what, jobs, field, message) => {
    await expect(load(...(jobs as unknown[]))).rejects.toMatchObject({
      code: "HANDLERS_INVALID",
      field,
      message: expect.stringMatching(message as RegExp),
    });
  });

  it("names a program that may not be executed", async () => {
    write("run.sh", "#!/bin/sh\n");
    await expect(load({ type: "a", executable: ["./run.sh"] })).rejects.toThrow(
      /run\.sh is not executable; `chmod \+x`/,
    );
  });
});

describe("its schemas", () => {
  const input = {
    type: "object",
    properties: {
      mail: { type: "string", format: "email" },
      kind: { enum: ["a", "b"] },
      "a/b~c": { type: "array", items: { const: 1 } },
    },
    required: ["mail"],
    additionalProperties: false,
    "x-note": "anybody's",
  };

  it.each([
    [{ mail: "a@b.example", kind: "a", "a/b~c": [1] }, undefined, undefined],
    [{}, "$", /must have required property 'mail'/],
    [{ mail: "nobody" }, "$.mail", /must match format "email"/],
    [{ mail: "a@b.example", kind: "c" }, "$.kind", /one of the allowed values: \["a","b"\]/],
    [{ mail: "a@b.example", more: 1 }, "$", /additional properties: "more"/],
    [{ mail: "a@b.example", "a/b~c": [1, 2] }, "$.a/b~c[1]", /equal to constant: 1/],
  ])("judge %j", async (value, field, message) => {
    const [definition] = await load({ ...job, input });
    const judged = (async () => validate(definition?.input as never, value, "INPUT_INVALID"))();
    if (field === undefined) expect(await judged).toBe(value);
    else
      await expect(judged).rejects.toMatchObject({
        code: "INPUT_INVALID",
        field,
        message: expect.stringMatching(message as RegExp),
      });
  });

  it("may be true and false", async () => {
    const [definition] = await load({ ...job, input: true, output: false });
    expect(await validate(definition?.input as never, 1, "INPUT_INVALID")).toBe(1);
    expect(() => validate(definition?.output as never, 1, "OUTPUT_INVALID")).toThrow(/\$: /);
  });
});

describe("a handlers path", () => {
  it("may be a folder with manifests, modules and other JSON", async () => {
    write("handlers.json", { jobs: [job] });
    write("more.json", { jobs: [{ ...job, type: "more" }] });
    write(
      "module.mjs",
      'import { defineJob } from "oracle-worker"; import { z } from "zod"; export const a = defineJob({ type: "module", input: z.any(), output: z.any(), run: () => 1 });',
    );
    write("package.json", { jobs: "not ours" });
    write("tsconfig.build.json", "{ // a comment\n}");
    write("data.json", { rows: [{ jobs: 3 }] });
    write("broken.json", "{ no JSON");
    write("notes.txt", "");
    expect((await loadHandlers(folder)).map(({ type }) => type)).toEqual(["score", "module", "more"]);
  });

  it("that is a folder is refused with a manifest that is broken", async () => {
    const path = write("handlers.json", '{"jobs": [{"type": "a",}]}');
    await expect(loadHandlers(folder)).rejects.toMatchObject({
      code: "HANDLERS_INVALID",
      message: expect.stringMatching(new RegExp(`^${path}: The manifest is not JSON: line 1, column 24`)),
    });
  });

  it.each([
    ["data.json", { rows: [] }, /data\.json is no manifest: it has no list "jobs"/],
    ["handlers.json", { jobs: {} }, /is no manifest/],
    ["handlers.json", { jobs: [], job: [] }, /job: it must hold "jobs" and nothing else/],
    ["handlers.json", { jobs: [] }, /defines no job/],
    ["tasks.py", "", /tasks\.py is not a \.ts, \.mts, \.js or \.mjs module or a \.json manifest/],
  ])("%s with %j is refused", async (name, content, message) => {
    await expect(loadHandlers(write(name, content))).rejects.toMatchObject({
      code: "HANDLERS_INVALID",
      message: expect.stringMatching(message),
    });
  });

  it("with nothing in it is refused", async () => {
    await expect(loadHandlers(folder)).rejects.toThrow(/defines no job: it must be, or hold, a \.ts/);
  });
});
