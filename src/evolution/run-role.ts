import { z } from "zod";
import type { JobArtifactKind } from "../core/evolution.js";
import { type JsonValue, sanitizeText, toJsonText } from "../core/json.js";
import { redactText } from "../core/redact.js";
import { secretsIn } from "../core/secrets.js";
import { defineJob, type JobContext } from "../handlers/define.js";
import { allowedEnvironment } from "../handlers/environment.js";
import type { ProcessGroups } from "../handlers/process/group.js";
import { Launcher } from "../handlers/process/launcher.js";
import { findTools } from "../handlers/process/limits.js";
import { runOneShot } from "../handlers/process/one-shot.js";
import { type CommandEnd, runCommand } from "../handlers/process/run-command.js";
import { toRequest } from "../handlers/protocol.js";
import { validate } from "../handlers/validate.js";
import type { RoleContext } from "./roles.js";
import type { EvolutionSpec } from "./spec.js";
import { type RoleName, wrongAnswer } from "./wrong-answer.js";

/** What is kept of what a command without a protocol writes to stdout and stderr each; an evaluator's word comes last. */
const OUTPUT_BYTES = 16_777_216;

export interface Kept {
  kind: JobArtifactKind;
  artifact_id: string;
}

type Attempt = JobContext<EvolutionSpec>;

/** Calls planner, coder and evaluator of one attempt: functions here, programs in process groups of their own. */
export class RoleRunner {
  constructor(
    private readonly context: Attempt,
    private readonly worktree: string,
    private readonly groups: ProcessGroups | undefined,
    private readonly env: string[],
  ) {}

  /** For roles that are functions. */
  get roleContext(): RoleContext {
    const { signal, log } = this.context;
    return { worktree: this.worktree, signal, log };
  }

  /** What a role answered, as its schema has it. */
  async check<T>(role: RoleName, schema: z.ZodType<T>, answer: unknown): Promise<T> {
    try {
      return (await validate(schema, answer, "OUTPUT_INVALID")) as T;
    } catch (error) {
      throw wrongAnswer(role, error);
    }
  }

  /** A program under the one-shot protocol: the request is its input. What it wrote to stderr becomes an artifact. */
  async runExecutable<T>(
    role: RoleName,
    executable: [string, ...string[]],
    schema: z.ZodType<T>,
    request: object,
  ): Promise<{ answer: T; log: string | undefined }> {
    const { worktree: cwd, env, context } = this;
    const definition = defineJob({
      type: context.job.type,
      input: z.unknown(),
      output: schema,
      executable,
      cwd,
      env,
    });
    let log: string | undefined;
    const noting: JobContext<unknown> = Object.create(context, {
      artifact: {
        value: async (...[, content, options]: Parameters<Attempt["artifact"]>) => {
          const kept = await context.artifact(`${role}.log`, content, options);
          log = kept.artifact_id;
          return kept;
        },
      },
    });
    const { id: jobId, ...job } = context.job;
    const lease = { ...job, jobId, input: request as JsonValue };
    const task = {
      definition,
      context: noting,
      lease,
      request: toJsonText(toRequest(lease), anySize, "request"),
    };
    const launcher = new Launcher(await findTools(), this.groups);
    const result = await runOneShot(task, launcher).catch((error) =>
      Promise.reject(wrongAnswer(role, error)),
    );
    const answer = await this.check(role, schema, result);
    return { answer, log };
  }

  /** A program that knows nothing of us. */
  runProgram(command: [string, ...string[]], input?: string): Promise<CommandEnd> {
    return runCommand(command, {
      cwd: this.worktree,
      env: allowedEnvironment({ process: { env: this.env } }),
      signal: this.context.signal,
      groups: this.groups,
      ...(input === undefined ? {} : { input }),
      outputBytes: OUTPUT_BYTES,
    });
  }

  /** Keeps a text with the attempt, without secrets. Nothing is kept of an empty one. */
  async keep(kind: JobArtifactKind, name: string, text: string): Promise<Kept[]> {
    if (text === "") return [];
    const clean = sanitizeText(redactText(text, secretsIn(this.context.input)), text.length + 1);
    const { artifact_id } = await this.context.artifact(name, clean);
    return [{ kind, artifact_id }];
  }
}

/** Made of a spec and of answers that are bounded already. */
const anySize = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 500 };

/** Both outputs of a command, one after the other. */
export function outputOf({ stdout, stderr, cut }: CommandEnd): string {
  const parts = [stdout, stderr].map((bytes) => bytes.toString("utf8")).filter((text) => text !== "");
  return parts.join("\n--- stderr\n") + (cut ? "\n[cut]\n" : "");
}
