import { spawn } from "node:child_process";

/** The operating system account a program runs as; absent: our own. */
export interface Account {
  uid: number;
  gid: number;
}

interface Finished {
  code: number | null;
  /** Standard output and standard error, as they came. */
  output: string;
}

interface RunOptions {
  /** Always given: our own working directory may be closed to the account. */
  cwd: string;
  account: Account | undefined;
  input?: string;
}

/** Runs a program to its end. */
export function run(file: string, args: string[], options: RunOptions): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, session(options));
    let output = "";
    const collect = (chunk: Buffer) => {
      output += chunk.toString();
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
    // A program that ends before it read its input: its exit code and output tell more than EPIPE.
    child.stdin.on("error", () => {});
    child.stdin.end(options.input);
  });
}

/** A program that was started to outlive us. */
export interface Launched {
  ended: boolean;
}

/** Starts a program that runs on after our own end, logging to an open file. */
export function launch(
  file: string,
  args: string[],
  options: { cwd: string; account: Account | undefined; log: number },
): Promise<Launched> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      ...session(options),
      stdio: ["ignore", options.log, options.log],
    });
    const launched = { ended: false };
    child.once("error", reject);
    child.once("spawn", () => resolve(launched));
    child.once("exit", () => {
      launched.ended = true;
    });
    child.unref();
  });
}

/**
 * A session of its own, so that Ctrl-C does not reach the program. It sees no secrets of ours (it may live on
 * under another account, which can read its environment), and speaks English, so that its messages can be
 * recognised.
 */
function session(options: { cwd: string; account: Account | undefined }) {
  return {
    cwd: options.cwd,
    env: environment(),
    detached: true,
    windowsHide: true,
    ...options.account,
  };
}

function environment(): NodeJS.ProcessEnv {
  const kept = ["PATH", "SystemRoot", "TEMP", "TMP"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(kept), LC_ALL: "C", TZ: "UTC" };
}
