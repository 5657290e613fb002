import type { WorkloadResult } from "../rounds.ts";
import type { Contestant } from "../types.ts";
import { type Group, groupByMetric, short } from "./ratios.ts";

const WIDTH = 760;
const LABEL = 150;
const FIGURE = 130;
const BAR = 18;
const ROW = 26;
const GROUP_HEAD = 34;
const COLOURS = { ours: "#1d4ed8", peer: "#64748b", floor: "#b45309" } as const;

/** One plot per workload: a block per metric, a bar per contestant, whiskers from the lowest to the highest round. */
export function renderPlot(result: WorkloadResult, contestants: Contestant[]): string {
  const groups = groupByMetric(result, contestants);
  const parts = [text(16, 30, `${result.workload}: ${result.title}`, "title")];
  let y = 44;
  for (const group of groups) {
    parts.push(text(16, y + 22, `${group.metric} (${group.unit}, ${group.better} is better)`, "metric"));
    y += GROUP_HEAD;
    parts.push(...bars(group, y));
    y += group.rows.length * ROW + 6;
  }
  const height = y + 14;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${escaped(result.title)}</title>
<style>
text { font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 12px; fill: #0f172a }
.title { font-size: 16px; font-weight: 600 } .metric { font-size: 13px; font-weight: 600 } .end { text-anchor: end }
</style>
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
${parts.join("\n")}
</svg>
`;
}

function bars(group: Group, top: number): string[] {
  const finite = group.rows.flatMap((row) => [row.max, row.median]).filter((value) => Number.isFinite(value));
  const most = Math.max(...finite, Number.MIN_VALUE);
  const room = WIDTH - LABEL - FIGURE - 24;
  const x = (value: number) => LABEL + (Math.min(value, most) / most) * room;
  return group.rows.flatMap((row, index) => {
    const y = top + index * ROW;
    const middle = y + BAR / 2;
    const paint =
      row.measured === false
        ? `fill="#ffffff" stroke="${COLOURS[row.side]}" stroke-dasharray="4 3"`
        : `fill="${COLOURS[row.side]}"`;
    const bar = `<rect x="${LABEL}" y="${y}" width="${fixed(x(row.median) - LABEL)}" height="${BAR}" ${paint} rx="2"/>`;
    const whisker =
      row.samples.length > 1 && Number.isFinite(row.max)
        ? `<path d="M${fixed(x(row.min))} ${middle}H${fixed(x(row.max))}M${fixed(x(row.min))} ${middle - 4}v8M${fixed(x(row.max))} ${middle - 4}v8" stroke="#0f172a" fill="none"/>`
        : "";
    // Figures stand in a column of their own: beside a bar they would run into its whisker.
    const beside = row.measured === false ? "  documented" : row.ratio ? `  (${row.ratio.toFixed(2)} ×)` : "";
    const figure = text(WIDTH - 16, middle + 4, `${short(row.median)}${beside}`, "end");
    return [text(LABEL - 8, middle + 4, row.contestant, "end"), bar, whisker, figure];
  });
}

function text(x: number, y: number, content: string, kind: string): string {
  return `<text x="${x}" y="${y}" class="${kind}">${escaped(content)}</text>`;
}

const fixed = (value: number) => value.toFixed(1);

function escaped(content: string): string {
  return content.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
