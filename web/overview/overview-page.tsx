import { useState } from "react";
import { useSession } from "../session.js";
import { ErrorNotice, PageHead } from "../ui/page.js";
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
      {!stats && !error && <Waiting dev={dev} />}
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

/** Keeps the place of what comes. */
function Waiting({ dev }: { dev: boolean }) {
  const boxes = (count: number, look: string) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the boxes are all alike
    Array.from({ length: count }, (_, index) => <div key={index} className={`${look} waits`} />);
  return (
    <>
      <div className="tiles" aria-busy="true">
        <span className="visually-hidden">Loading</span>
        {boxes(8, "tile")}
      </div>
      {boxes(dev ? 2 : 1, "panel needs-place")}
      <div className="charts">{boxes(5, "chart")}</div>
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
