import { useSyncExternalStore } from "react";

// One clock for the whole page: every relative time moves in the same second.

let now = Date.now();
const watching = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function watch(listener: () => void): () => void {
  watching.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of watching) each();
  }, 1000);
  return () => {
    watching.delete(listener);
    if (watching.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Renders again every second. What has come since the last tick is not in the future. */
export function useNow(): number {
  useSyncExternalStore(watch, () => now);
  return Date.now();
}

const units: [seconds: number, name: string][] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** `850 ms`, `12 s`, `3 min`, `2 h`, `5 d`. */
export function shortDuration(seconds: number): string {
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const [size, name] = units.find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${name}`;
}

export function relativeTime(at: number, from: number): string {
  const seconds = (from - at) / 1000;
  if (Math.abs(seconds) < 1.5) return "just now";
  const amount = shortDuration(Math.max(1, Math.floor(Math.abs(seconds)))).replace(".0 ", " ");
  return seconds > 0 ? `${amount} ago` : `in ${amount}`;
}

export function exactTime(iso: string): string {
  const at = new Date(iso);
  return `${at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" })} (${iso})`;
}

/** A relative time; the exact one on hover and for machines. */
export function Time({ at }: { at: string | null | undefined }) {
  const from = useNow();
  if (!at) return <span className="muted">–</span>;
  return (
    <time dateTime={at} title={exactTime(at)} className="when">
      {relativeTime(Date.parse(at), from)}
    </time>
  );
}
