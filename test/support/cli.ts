import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export interface CliOptions {
  env?: Record<string, string>;
  cwd?: string;
  stdin?: string | Buffer;
}

export interface CliEnd {
  code: number;
  stdout: string;
  stderr: string;
  /** The one document on stdout; empty when it is none. */
  json: Record<string, unknown>;
  /** The one error on stderr. */
  error: { code: string; message: string; field?: string };
}

/** Runs the built command line to its end, with `--json`, in an environment that holds nothing else. */
export function runToEnd(args: string[], options: CliOptions = {}): Promise<CliEnd> {
  return runAsPerson([...args, "--json"], options);
}

export function runAsPerson(args: string[], { env, cwd, stdin }: CliOptions = {}): Promise<CliEnd> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [main, ...args],
      { env: { PATH: process.env.PATH, ...env }, cwd, maxBuffer: 64 * 1024 * 1024 },
      (failure, stdout, stderr) => {
        resolve({
          code: failure ? Number(failure.code) : 0,
          stdout,
          stderr,
          json: parse(stdout),
          error: parse(stderr).error,
        });
      },
    );
    // A command that refuses its arguments ends without reading.
    child.stdin?.on("error", () => {});
    child.stdin?.end(stdin);
  });
}

/** Text for people is no document; a test that expects one fails and shows the text. */
function parse(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
