import type uPlot from "uplot";

export interface Series {
  label: string;
  /** The name of a colour of styles/tokens.css. */
  colour: string;
  /** Tells lines apart without colour. */
  dash?: number[];
  fill?: boolean;
  values: (number | null)[];
}

export interface ChartProps {
  title: string;
  /** Seconds since 1970, ascending. */
  times: number[];
  series: Series[];
  format: (value: number) => string;
  /** Counts: no ticks between the whole numbers. */
  whole?: boolean;
}

const wholeSteps = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].flatMap((step) => [step, 2 * step, 5 * step]);

export const HEIGHT = 160;
const SHORTEST_SECONDS = 300;

export function dataOf({ times, series }: Pick<ChartProps, "times" | "series">): uPlot.AlignedData {
  return [times, ...series.map(({ values }) => values)] as uPlot.AlignedData;
}

export function optionsOf(
  element: HTMLElement,
  { series, format, whole = false }: Pick<ChartProps, "series" | "format" | "whole">,
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const resolve = colourReader(element);
  const axis = {
    stroke: resolve("--muted"),
    grid: { stroke: resolve("--line"), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(element).fontFamily}`,
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 20, 0, 0],
    cursor: { y: false, drag: { setScale: false } },
    scales: {
      // A first sample alone would stretch over years.
      x: { range: ({ data: [times] }) => spanOf(times) },
      y: { range: (_plot, _least, most) => [0, Math.max(1, (most ?? 0) * 1.1)] },
    },
    series: [
      {},
      ...series.map(({ label, colour, dash, fill }) => ({
        label,
        stroke: resolve(colour),
        width: 1.6,
        points: {
          show: false,
          filter: (plot: uPlot, index: number) => lonely(plot.data[index] ?? []),
          size: 4,
        },
        ...(dash ? { dash } : {}),
        ...(fill ? { fill: withAlpha(resolve(colour)) } : {}),
      })),
    ],
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 26,
        values: (_plot, ticks, _axis, _space, step) => ticks.map((at) => clock(at, step)),
      },
      {
        ...axis,
        size: 52,
        values: (_plot, ticks) => ticks.map(format),
        ...(whole ? { incrs: wholeSteps } : {}),
      },
    ],
    hooks: { setCursor: [(made) => onPoint(made.cursor.idx ?? null)] },
  };
}

/** Values without a neighbour: no line would show them. */
function lonely(values: ArrayLike<number | null | undefined>): number[] {
  const known = (at: number) => values[at] !== null && values[at] !== undefined;
  return Array.from(values, (_, at) => at).filter((at) => known(at) && !known(at - 1) && !known(at + 1));
}

function spanOf(times: ArrayLike<number>): [from: number, to: number] {
  const to = times[times.length - 1] ?? Date.now() / 1000;
  return [Math.min(times[0] ?? to, to - SHORTEST_SECONDS), to];
}

/** The time of day; the day where ticks are that far apart. */
function clock(at: number, stepSeconds: number): string {
  const date = new Date(at * 1000);
  if (stepSeconds >= 86_400) return date.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  const two = (part: number) => String(part).padStart(2, "0");
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return stepSeconds >= 60 ? minutes : `${minutes}:${two(date.getSeconds())}`;
}

/** Canvas wants plain colours; the browser computes them from the page's own. */
function colourReader(element: HTMLElement): (name: string) => string {
  const probe = document.createElement("span");
  element.append(probe);
  return (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
}

function withAlpha(colour: string): string {
  return colour.replace("rgb(", "rgba(").replace(")", ", 0.12)");
}
