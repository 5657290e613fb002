import { delimiter } from "node:path";
import { fileURLToPath } from "node:url";
import type { JobDefinition } from "./define.js";

/** Where oracle_worker.py lies. */
export const pythonFolder = fileURLToPath(new URL("../../python", import.meta.url));

const inherited = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/** The worker's environment holds its secrets: a handler elsewhere gets only what is named. */
export function allowedEnvironment(definition: Pick<JobDefinition, "process">): Record<string, string> {
  const names = [...inherited, ...(definition.process.env ?? [])];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

/** So that a Python program finds its helper, and what the worker's own PYTHONPATH names, without being told to. */
export function pythonPath(): string {
  return [process.env.PYTHONPATH, pythonFolder].filter(Boolean).join(delimiter);
}
