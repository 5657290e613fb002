import { useEffect, useRef, useState } from "react";
import type { JobWithInputJson, LogLineJson } from "../../src/http/client.js";
import { CommandLine } from "../ui/copy.js";
import { Panel } from "../ui/page.js";
import { exactTime } from "../ui/time.js";
import { useAttempts } from "./use-job.js";
import { MOST_LINES, useLogs } from "./use-logs.js";

/** Progress and log of one attempt: the latest, unless the person chose another. */
export function LogsPanel({ job }: { job: JobWithInputJson }) {
  const { data: attempts = [] } = useAttempts(job);
  const [chosen, setChosen] = useState<number>();
  const latest = attempts.at(-1)?.attempt_no ?? 0;
  const attemptNo = chosen ?? latest;
  const { data: lines = [] } = useLogs(job.job_id, attemptNo);
  const progress =
    job.progress?.attempt_no === attemptNo
      ? job.progress
      : attempts.find((attempt) => attempt.attempt_no === attemptNo)?.progress;
  return (
    <Panel
      title="Progress and log"
      aside={
        attempts.length > 1 && (
          <select
            className="input compact"
            aria-label="Attempt whose log is shown"
            value={chosen ?? ""}
            onChange={(event) => setChosen(event.target.value ? Number(event.target.value) : undefined)}
          >
            <option value="">Latest attempt</option>
            {attempts.map(({ attempt_no }) => (
              <option key={attempt_no} value={attempt_no}>
                Attempt {attempt_no}
              </option>
            ))}
          </select>
        )
      }
    >
      <div className="progress">
        <progress value={progress?.fraction ?? 0} max={1} aria-label="Progress" />
        <span className="small muted breaks">
          {progress
            ? `${Math.round(progress.fraction * 100)} % ${progress.message ?? ""}`
            : "No progress reported"}
        </span>
      </div>
      <LogLines lines={lines} />
      {lines.length >= MOST_LINES && <CommandLine command={`oracle-worker jobs tail ${job.job_id}`} />}
    </Panel>
  );
}

/** Stays at its end while the person has not scrolled away from it. */
function LogLines({ lines }: { lines: LogLineJson[] }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new line is what moves it
  useEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  return (
    <div
      ref={box}
      className="log"
      role="log"
      aria-label="Log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        atEnd.current = scrollTop + clientHeight > scrollHeight - 20;
      }}
    >
      {lines.length === 0 && <p className="log-empty muted">Nothing logged</p>}
      <ol>
        {lines.map((line) => (
          <li key={line.seq} className={`level-${line.level}`}>
            <time dateTime={line.at} title={exactTime(line.at)} className="muted">
              {line.at.slice(11, 23)}
            </time>
            <b>{line.level}</b>
            <span>
              {line.message} <Fields value={line.fields} />
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}

function Fields({ value }: { value: LogLineJson["fields"] }) {
  const text = value === null || value === undefined ? "" : JSON.stringify(value);
  return text === "" || text === "{}" ? null : <span className="muted">{text}</span>;
}
