import type { Command } from "commander";
import type { Settings } from "../core/settings.js";
import type { Oracle } from "../oracle.js";
import { loadSettings } from "./config.js";
import { type OpenOptions, useOracle } from "./open.js";
import { createOutput, type Output } from "./output.js";

/** What the work of a client command is given. */
export interface Call<Flags> {
  flags: Flags;
  out: Output;
  settings: Settings;
  /** Opens the installation for the time of the work. */
  withOracle<T>(work: (oracle: Oracle) => Promise<T>, options?: OpenOptions): Promise<T>;
}

/** The action of a client command: settings are read and checked before its work begins. */
export function action<Flags = Record<never, never>>(
  work: (call: Call<Flags>, ...args: string[]) => Promise<void>,
): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    // Commander passes the arguments, the command's own flags and the command.
    const command = given.at(-1) as Command;
    const args = given.slice(0, -2) as string[];
    const flags = command.optsWithGlobals<Flags & { json?: boolean }>();
    const settings = await loadSettings(command);
    await work(
      {
        flags,
        out: createOutput(flags.json === true),
        settings,
        withOracle: (use, options) => useOracle(settings, { closeOnSignal: true, ...options }, use),
      },
      ...args,
    );
  };
}

/** The end of a command's help. */
export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`;
}
