import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

export const pythonFolder = fileURLToPath(new URL("../../python", import.meta.url));

export type Message = Record<string, unknown>;

const started: ChildProcess[] = [];
afterAll(() => {
  for (const child of started) child.kill("SIGKILL");
});

/** A program in Python with oracle_worker.py at hand, and this process in the worker's place. */
export class PythonChild {
  readonly ended: Promise<number | NodeJS.Signals>;
  stderr = "";
  readonly process: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  constructor(program: string, { warm }: { warm: boolean }) {
    this.process = spawn("python3", [program], {
      env: { PATH: process.env.PATH, PYTHONPATH: pythonFolder, ...(warm ? { ORACLE_WORKER_WARM: "1" } : {}) },
      stdio: ["pipe", "pipe", "pipe"],
    });
    started.push(this.process);
    const { stdout, stderr } = this.process as { stdout: Readable; stderr: Readable };
    stderr.setEncoding("utf8").on("data", (chunk: string) => {
      this.stderr += chunk;
    });
    this.lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
    this.ended = new Promise((resolve) =>
      this.process.once("close", (code, signal) => resolve(code ?? (signal as NodeJS.Signals))),
    );
  }

  get stdin(): Writable {
    return this.process.stdin as Writable;
  }

  send(...messages: Message[]): void {
    this.stdin.write(messages.map((message) => `${JSON.stringify(message)}\n`).join(""));
  }

  /** The next line of its stdout. */
  async next(): Promise<Message> {
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`the program ended; its stderr:\n${this.stderr}`);
    return JSON.parse(value);
  }

  /** One job, and everything said until its response. */
  async answer(type: string, input: unknown = null, attemptId = "attempt-1"): Promise<Message[]> {
    this.send(request(type, input, attemptId));
    const said = [await this.next()];
    while (!("ok" in (said.at(-1) as Message))) said.push(await this.next());
    return said;
  }

  async end(): Promise<number | NodeJS.Signals> {
    this.stdin.end();
    return this.ended;
  }
}

export function request(type: string, input: unknown = null, attemptId = "attempt-1"): Message {
  return {
    v: 1,
    job_id: "job-1",
    attempt_id: attemptId,
    attempt_no: 2,
    job_type: type,
    tenant_id: "team-a",
    queue: "default",
    input,
    idempotency_key: "key-1",
    deadline: "2030-01-02T03:04:05.678Z",
    trace: null,
  };
}
