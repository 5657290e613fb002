import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type ChartProps, dataOf, HEIGHT, optionsOf } from "./chart-options.js";
import { useTheme } from "./use-theme.js";

/** A live line chart. Its legend shows the values under the pointer, or else the latest, as text. */
export function Chart({ title, times, series, format, whole = false }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [pointed, setPointed] = useState<number | null>(null);
  const theme = useTheme();
  const shape = series.map((each) => each.label).join();
  const latest = useRef({ times, series, format, whole });
  latest.current = { times, series, format, whole };

  // The plot is made anew only when its lines or colours change; new values are handed to it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the values are read from the ref on purpose
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const made = new uPlot(optionsOf(element, latest.current, setPointed), dataOf(latest.current), element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [shape, theme]);

  useEffect(() => plot.current?.setData(dataOf({ times, series })), [times, series]);

  const at = pointed ?? times.length - 1;
  const values = series.map(({ label, values }) => [label, values[at] ?? null] as const);
  const words = values.map(([label, value]) => `${label} ${value === null ? "none" : format(value)}`);
  return (
    <figure className="chart">
      <figcaption>
        <h3>{title}</h3>
        <ul className="legend">
          {series.map(({ label, colour, dash }, index) => (
            <li key={label}>
              <Swatch colour={colour} dash={dash} />
              {label} <b>{values[index]?.[1] == null ? "–" : format(values[index][1])}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={host} className="plot" role="img" aria-label={`${title}, latest: ${words.join(", ")}`} />
    </figure>
  );
}

function Swatch({ colour, dash }: { colour: string; dash: number[] | undefined }) {
  return (
    <svg width="16" height="8" aria-hidden="true">
      <line
        x1="0"
        y1="4"
        x2="16"
        y2="4"
        stroke={`var(${colour})`}
        strokeWidth="2.5"
        strokeDasharray={dash?.join(" ")}
      />
    </svg>
  );
}
