import type { WorkloadResult } from "../rounds.ts";
import type { Contestant } from "../types.ts";
import type { Machine } from "./machine.ts";
import { groupByMetric, short } from "./ratios.ts";

/** The whole report as Markdown; the terminal shows the same text. */
export function renderReport(
  machine: Machine,
  results: WorkloadResult[],
  contestants: Contestant[],
  command: string,
): string {
  return [
    "# Benchmark",
    "",
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, Linux ${machine.kernel}; load ${machine.loadAtStart} ` +
      `when it began. Node ${machine.node}, PostgreSQL ${machine.postgres} (default settings, fsync on), Redis ${machine.redis}. ` +
      `Command: \`${command}\``,
    "",
    "Median of the rounds with the lowest and highest beside; ratio to the best peer of the same run, of those on PostgreSQL where there are any.",
    "",
    ...results.flatMap((result) => [renderWorkload(result, contestants), ""]),
    renderContestants(contestants, results),
    "",
  ].join("\n");
}

export function renderWorkload(result: WorkloadResult, contestants: Contestant[]): string {
  const rows = groupByMetric(result, contestants).flatMap(({ metric, unit, better, rows: own }) =>
    own.map((row, index) => [
      index === 0 ? `${metric} (${unit}${better === "lower" ? ", lower is better" : ""})` : "",
      row.contestant,
      row.measured === false ? `${short(row.median)} (documented)` : short(row.median),
      row.samples.length > 1 ? `${short(row.min)} – ${short(row.max)}` : "",
      row.side === "floor" ? "floor" : row.ratio === undefined ? "" : `${row.ratio.toFixed(2)} ×`,
      row.note ?? "",
    ]),
  );
  const withNotes = rows.some((row) => row[5] !== "");
  const head = ["metric", "contestant", "median", "min – max", "vs best peer", "note"];
  const width = withNotes ? 6 : 5;
  const absent = result.absent.map(({ contestant, why }) => `- ${contestant}: ${why}`);
  return [
    `## ${result.workload}: ${result.title}`,
    "",
    `${result.about}. Rounds: ${result.rounds}.`,
    "",
    ...(rows.length > 0 ? columns([head, ...rows].map((row) => row.slice(0, width))) : ["No figures."]),
    ...(absent.length > 0 ? ["", "Not in it:", "", ...absent] : []),
  ].join("\n");
}

function renderContestants(contestants: Contestant[], results: WorkloadResult[]): string {
  const seen = new Set(results.flatMap((result) => result.series.map((series) => series.contestant)));
  const rows = contestants
    .filter(({ name }) => seen.has(name))
    .map((who) => [who.name, who.version(), who.settings, who.keeps]);
  return ["## Contestants", "", ...columns([["name", "version", "settings", "keeps"], ...rows], false)].join(
    "\n",
  );
}

/** A Markdown table; padded, so that it reads well on a terminal too. */
function columns(rows: string[][], pad = true): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length), 3),
  );
  const line = (row: string[]) =>
    `| ${row.map((cell, column) => (pad ? cell.padEnd(widths[column] ?? 0) : cell)).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(pad ? width : 3)).join(" | ")} |`;
  const [head = [], ...body] = rows;
  return [line(head), rule, ...body.map(line)];
}
