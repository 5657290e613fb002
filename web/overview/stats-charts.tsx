import { useMemo } from "react";
import type { StatsJson } from "../../src/http/client.js";
import { Chart } from "../ui/chart.js";
import type { Series } from "../ui/chart-options.js";
import { whole } from "../ui/numbers.js";
import { shortDuration } from "../ui/time.js";
import { useDepth } from "./use-stats.js";

export function StatsCharts({ stats }: { stats: StatsJson }) {
  const depth = useDepth(stats);
  const charts = useMemo(() => seriesOf(stats), [stats]);
  const depthSeries = useMemo<Series[]>(
    () => [
      { label: "ready", colour: "--accent", fill: true, values: depth.ready },
      { label: "running", colour: "--good", dash: [6, 3], values: depth.running },
      { label: "delayed", colour: "--warn", dash: [2, 3], values: depth.delayed },
    ],
    [depth],
  );
  const per = shortDuration(stats.bucket_seconds).replace(".0", "");
  return (
    <section className="charts" aria-label="Charts">
      <Chart
        title="Queue depth since this tab opened"
        times={depth.times}
        series={depthSeries}
        whole
        format={whole}
      />
      <Chart
        title={`Attempts ended per ${per}`}
        times={charts.times}
        series={charts.throughput}
        whole
        format={whole}
      />
      <Chart
        title="Wait, from due to started"
        times={charts.times}
        series={charts.wait}
        format={shortDuration}
      />
      <Chart
        title="Run, from started to ended"
        times={charts.times}
        series={charts.run}
        format={shortDuration}
      />
      <Chart
        title={`Failed attempts per ${per}, by class`}
        times={charts.times}
        series={charts.failures}
        whole
        format={whole}
      />
    </section>
  );
}

type Bucket = StatsJson["buckets"][number];

const percentiles = [
  ["p50", "--good", undefined],
  ["p90", "--accent", [6, 3]],
  ["p99", "--bad", [2, 3]],
] as const;

/** The last bucket is still filling: drawn, it would look like a fall. */
function seriesOf(stats: StatsJson) {
  const buckets = stats.buckets.slice(0, -1);
  const timesOf = (which: "wait" | "run") =>
    percentiles.map(
      ([name, colour, dash]): Series => ({
        label: name,
        colour,
        values: buckets.map((bucket) => bucket[which]?.[name] ?? null),
        ...(dash ? { dash: [...dash] } : {}),
      }),
    );
  return {
    times: buckets.map(({ at }) => Date.parse(at) / 1000),
    throughput: [
      { label: "succeeded", colour: "--good", fill: true, values: buckets.map(({ succeeded }) => succeeded) },
      { label: "failed", colour: "--bad", dash: [2, 3], values: buckets.map(({ failed }) => failed) },
    ] satisfies Series[],
    wait: timesOf("wait"),
    run: timesOf("run"),
    failures: failureSeries(buckets),
  };
}

const failureLooks: Pick<Series, "colour" | "dash">[] = [
  { colour: "--bad" },
  { colour: "--warn", dash: [6, 3] },
  { colour: "--accent", dash: [2, 3] },
  { colour: "--calm", dash: [8, 3, 2, 3] },
];

/** The most frequent classes by name, the others as one line. */
function failureSeries(buckets: Bucket[]): Series[] {
  const totals = new Map<string, number>();
  for (const { failures } of buckets) {
    for (const [code, count] of Object.entries(failures)) totals.set(code, (totals.get(code) ?? 0) + count);
  }
  const codes = [...totals].sort(([, a], [, b]) => b - a).map(([code]) => code);
  const named = codes.slice(
    0,
    codes.length > failureLooks.length ? failureLooks.length - 1 : failureLooks.length,
  );
  const series = named.map((code, index) => ({
    label: code,
    ...(failureLooks[index] as Pick<Series, "colour" | "dash">),
    values: buckets.map(({ failures }) => failures[code] ?? 0),
  }));
  if (codes.length === 0) {
    return [{ label: "none", colour: "--bad", values: buckets.map(() => 0) }];
  }
  if (named.length === codes.length) return series;
  const rest = codes.slice(named.length);
  const others = ({ failures }: Bucket) => rest.reduce((total, code) => total + (failures[code] ?? 0), 0);
  return [
    ...series,
    {
      label: "others",
      ...(failureLooks.at(-1) as Pick<Series, "colour" | "dash">),
      values: buckets.map(others),
    },
  ];
}
