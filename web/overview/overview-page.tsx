import { useState } from "react";
import { useSession } from "../session.js";
import { ErrorNotice, PageHead, Skeleton } from "../ui/page.js";
import { AttentionPanel } from "./attention-panel.js";
import { CrashPanel } from "./crash-panel.js";
import { StatsCharts } from "./stats-charts.js";
import { StatsTiles } from "./stats-tiles.js";
import { useStats, type Window } from "./use-stats.js";

const windows: [Window, string][] = [
  ["5m", "5 min"],
  ["15m", "15 min"],
  ["1h", "1 h"],
  ["6h", "6 h"],
  ["24h", "24 h"],
];

export function OverviewPage() {
  const [window, setWindow] = useState<Window>("15m");
  const { dev } = useSession();
  const { data: stats, error, refetch } = useStats(window);
  return (
    <>
      <PageHead title="Overview" actions={<WindowChoice window={window} choose={setWindow} />} />
      {error && <ErrorNotice error={error} retry={() => void refetch()} />}
      {!stats && !error && <Skeleton lines={14} />}
      {stats && (
        <>
          <StatsTiles stats={stats} />
          <AttentionPanel attention={stats.attention} />
          {dev && <CrashPanel />}
          <StatsCharts stats={stats} />
        </>
      )}
    </>
  );
}

function WindowChoice({ window, choose }: { window: Window; choose: (next: Window) => void }) {
  return (
    <fieldset className="segments">
      <legend className="visually-hidden">Time shown</legend>
      {windows.map(([each, word]) => (
        <button key={each} type="button" aria-pressed={window === each} onClick={() => choose(each)}>
          {word}
        </button>
      ))}
    </fieldset>
  );
}
