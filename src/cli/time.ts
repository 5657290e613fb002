/** How far a moment is from now, for people; `--json` has the exact one. */
export function relative(moment: Date, now = Date.now()): string {
  const seconds = (now - moment.getTime()) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
}

/** `0.4s`, `12s`, `5m`, `3h`, `8d`: one unit is enough to judge by. */
export function span(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  if (seconds < 120) return `${Math.round(seconds)}s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)}h`;
  return `${Math.round(seconds / 86_400)}d`;
}
