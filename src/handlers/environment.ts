import type { JobDefinition } from "./define.js";

const inherited = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/** The worker's environment holds its secrets: a handler elsewhere gets only what is named. */
export function allowedEnvironment(definition: JobDefinition): Record<string, string> {
  const names = [...inherited, ...(definition.process.env ?? [])];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}
