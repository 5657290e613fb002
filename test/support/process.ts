import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
export const handlers = fileURLToPath(new URL("./handlers.mjs", import.meta.url));

export interface Running {
  process: ChildProcess;
  /** Everything printed so far. */
  output: () => string;
  /** The exit code, or the signal that ended it. */
  ended: Promise<number | NodeJS.Signals>;
  /** Process ids of its worker processes. */
  children: () => number[];
}

const started: Running[] = [];
afterAll(() => {
  for (const running of started) {
    for (const pid of [...running.children(), running.process.pid as number]) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // already gone
      }
    }
  }
});

/** Starts the real command line in a process of its own. */
export function runCli(args: string[], env: Record<string, string>, cwd?: string): Running {
  const child = spawn(process.execPath, [cli, ...args], {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  }
  const running: Running = {
    process: child,
    output: () => text,
    ended: new Promise((resolve) =>
      child.once("close", (code, signal) => resolve(code ?? (signal as NodeJS.Signals))),
    ),
    children: () => childrenOf(child.pid as number),
  };
  started.push(running);
  return running;
}

function childrenOf(pid: number): number[] {
  try {
    return execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" })
      .split(/\s+/)
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}
