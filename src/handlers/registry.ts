import { OracleError } from "../core/errors.js";
import type { JobDefinition } from "./define.js";

/** The job types one worker serves. */
export class Registry {
  private readonly definitions = new Map<string, JobDefinition>();

  constructor(definitions: Iterable<JobDefinition>) {
    for (const definition of definitions) {
      if (this.definitions.has(definition.type)) {
        throw new OracleError("HANDLERS_INVALID", `Job type ${definition.type} is defined twice.`, {
          field: "jobs",
        });
      }
      this.definitions.set(definition.type, definition);
    }
  }

  find(type: string): JobDefinition | undefined {
    return this.definitions.get(type);
  }

  types(): string[] {
    return [...this.definitions.keys()];
  }

  /** Each type with its handler's version. */
  versions(): Record<string, string> {
    return Object.fromEntries([...this.definitions].map(([type, { version }]) => [type, version]));
  }
}
