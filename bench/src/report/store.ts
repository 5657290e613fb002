import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { WorkloadResult } from "../rounds.ts";
import type { Contestant, Options } from "../types.ts";
import type { Machine } from "./machine.ts";
import { renderPlot } from "./svg.ts";
import { renderReport } from "./table.ts";

/** Writes <time>/{results.json, table.md, <workload>.svg}; called after each workload, so a broken run leaves what it had. */
export function storeReport(
  started: Date,
  machine: Machine,
  results: WorkloadResult[],
  contestants: Contestant[],
  options: Options,
): { folder: string; report: string } {
  const folder = join(options.out, started.toISOString().slice(0, 19).replace(/:/g, "-"));
  mkdirSync(folder, { recursive: true });
  const command = `npm run bench -- ${process.argv.slice(2).join(" ")}`.trim();
  const who = contestants.map(({ name, side, store, version, settings, keeps }) => {
    return { name, side, store, version: version(), settings, keeps };
  });
  const everything = { started, command, machine, options, contestants: who, results };
  writeFileSync(join(folder, "results.json"), `${JSON.stringify(everything, numbers, 2)}\n`);
  const report = renderReport(machine, results, contestants, command);
  writeFileSync(join(folder, "table.md"), report);
  for (const result of results) {
    if (result.series.length > 0)
      writeFileSync(join(folder, `${result.workload}.svg`), renderPlot(result, contestants));
  }
  return { folder, report };
}

/** JSON has no infinity; 'never' is what it means here. */
function numbers(_key: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? "never" : value;
}
