import { dirname } from "node:path";
import type { ProcessGroups } from "../handlers/process/group.js";
import { type CommandEnd, runCommand } from "../handlers/process/run-command.js";
import { EvolutionWorkerError } from "./error.js";

/** What one call may write. */
const OUTPUT_BYTES = 16 * 1024 * 1024;
/** No call of git may take longer; a push over a slow line is the longest. */
const TIMEOUT_MS = 300_000;

/** Nothing of the machine's or the user's settings: only the repository's own, without its hooks. */
const settings = Object.entries({
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.autocrlf": "false",
  "core.quotePath": "false",
  // A card in the database must not outlive its commit when the power fails.
  "core.fsync": "committed,reference",
  "commit.gpgSign": "false",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "protocol.ext.allow": "never",
}).flatMap(([name, value]) => ["-c", `${name}=${value}`]);

const inherited = ["PATH", "HOME", "TMPDIR", "SSH_AUTH_SOCK"];

export interface GitCall {
  input?: string | Buffer;
  env?: Record<string, string>;
}

/** git in one folder, for one attempt. */
export class Git {
  constructor(
    readonly folder: string,
    private readonly signal: AbortSignal,
    private readonly groups: ProcessGroups | undefined,
    /** Of a worktree: whatever a coder made of the file `.git` in it, git keeps to this. */
    private readonly gitDir?: string,
  ) {}

  /** The same for a worktree. */
  in(folder: string, gitDir: string): Git {
    return new Git(folder, this.signal, this.groups, gitDir);
  }

  /** What it wrote, without the last line's end. Throws EVOLUTION_REPOSITORY when it fails. */
  async read(args: string[], call: GitCall = {}): Promise<string> {
    return (await this.bytes(args, call)).toString("utf8").replace(/\n$/, "");
  }

  async bytes(args: string[], call: GitCall = {}): Promise<Buffer> {
    const end = await this.try(args, call);
    if (!end.succeeded) throw this.failed(args, end);
    return end.stdout;
  }

  /** Its parts, of an output that is separated by NUL. */
  async list(args: string[]): Promise<string[]> {
    return (await this.read(args)).split("\0").filter(Boolean);
  }

  /** How it ended, for calls that may fail. */
  async try(args: string[], { input, env }: GitCall = {}): Promise<CommandEnd> {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    try {
      return await runCommand(["git", ...settings, ...args], {
        cwd: this.folder,
        env: { ...environment(), ...this.place(), ...env },
        signal: AbortSignal.any([this.signal, timeout]),
        groups: this.groups,
        ...(input === undefined ? {} : { input }),
        outputBytes: OUTPUT_BYTES,
      });
    } catch (error) {
      if (!timeout.aborted || this.signal.aborted) throw error;
      const message = `git ${args[0]} in ${this.folder} took longer than ${TIMEOUT_MS / 1000} s.`;
      throw new EvolutionWorkerError("EVOLUTION_REPOSITORY", message);
    }
  }

  /** Never a repository further up. */
  private place(): Record<string, string> {
    const { folder, gitDir } = this;
    return gitDir === undefined
      ? { GIT_CEILING_DIRECTORIES: dirname(folder) }
      : { GIT_DIR: gitDir, GIT_WORK_TREE: folder };
  }

  failed(args: string[], end: CommandEnd): EvolutionWorkerError {
    const said = end.stderr.toString("utf8").trim().slice(-1000) || end.how;
    const message = `git ${args[0]} failed in ${this.folder}: ${said}`;
    return new EvolutionWorkerError("EVOLUTION_REPOSITORY", message, { field: "repository" });
  }
}

function environment(): Record<string, string> {
  const kept = inherited.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []));
  return {
    ...Object.fromEntries(kept),
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
  };
}
