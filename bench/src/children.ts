import { type ChildProcess, fork } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Envelope, Inbox } from "./inbox.ts";
import type { RoleMessages, RoleName, RoleParams } from "./roles/index.ts";
import { endProcess } from "./servers/system.ts";
import type { Place } from "./types.ts";

const CHILD = join(dirname(fileURLToPath(import.meta.url)), "child.ts");

/** A contestant in a process of its own, playing one role; talks with the driver over Node's IPC channel. */
export interface Child<R extends RoleName> {
  pid: number;
  send(type: string, data?: unknown): void;
  /** The next message of that type; rejects when the child fails, ends, or the time is over. */
  receive<T extends keyof RoleMessages[R] & string>(type: T, timeoutMs?: number): Promise<RoleMessages[R][T]>;
  /** The latest message of that type so far, for counters of which only the last value matters. */
  latest<T extends keyof RoleMessages[R] & string>(type: T): RoleMessages[R][T] | undefined;
  alive(): boolean;
  kill(): Promise<void>;
}

export function spawnChild<R extends RoleName>(
  contestant: string,
  role: R,
  params: RoleParams[R],
  place: Place,
  env: Record<string, string> = {},
): Child<R> {
  const start = { contestant, role, params, place };
  const child: ChildProcess = fork(CHILD, [JSON.stringify(start)], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    env: { ...process.env, NODE_ENV: "production", ...env },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const inbox = new Inbox();
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4000);
    });
  }
  child.on("message", (message) => inbox.put(message as Envelope));
  child.on("exit", (code, signal) => inbox.fail(`${contestant}/${role} ended (${signal ?? code})\n${said}`));

  return {
    pid: child.pid ?? 0,
    send: (type, data) => void child.send({ type, data } satisfies Envelope),
    receive: (type, timeoutMs = 180_000) =>
      inbox.take(type, timeoutMs) as Promise<RoleMessages[R][typeof type]>,
    latest: (type) => inbox.latest.get(type) as RoleMessages[R][typeof type] | undefined,
    alive: () => !inbox.failed(),
    kill: () => endProcess(child, "SIGKILL", 5000),
  };
}
