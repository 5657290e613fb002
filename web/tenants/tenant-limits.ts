import type { RequestOf, TenantJson } from "../../src/http/client.js";

type Limits = NonNullable<RequestOf<"changeTenant">["body"]>;
type Rate = TenantJson["start_rate"];

const fields = [
  "weight",
  "max_running",
  "max_waiting",
  "start_rate",
  "enqueue_rate",
  "retention_seconds",
] as const;
export type LimitText = Record<(typeof fields)[number], string>;

/** How each limit is asked for; all are written as text, rates as `100/60s`. */
export const limitFields: { name: keyof LimitText; label: string; example: string }[] = [
  { name: "weight", label: "Weight", example: "1" },
  { name: "max_running", label: "Most running at once", example: "no limit" },
  { name: "max_waiting", label: "Most waiting; more are refused", example: "no limit" },
  { name: "start_rate", label: "Starts; more wait", example: "no limit, or such as 5/s or 100/60s" },
  { name: "enqueue_rate", label: "Submissions; more are refused", example: "no limit, or such as 50/s" },
  { name: "retention_seconds", label: "Finished jobs are kept for, in seconds", example: "as everybody's" },
];

export function rateText(rate: Rate): string {
  if (!rate) return "";
  return rate.seconds === 1 ? `${rate.count}/s` : `${rate.count}/${rate.seconds}s`;
}

export function toText(tenant: TenantJson | undefined): LimitText {
  const text = (value: number | null | undefined) => (value == null ? "" : String(value));
  return {
    weight: text(tenant?.weight ?? 1),
    max_running: text(tenant?.max_running),
    max_waiting: text(tenant?.max_waiting),
    start_rate: rateText(tenant?.start_rate ?? null),
    enqueue_rate: rateText(tenant?.enqueue_rate ?? null),
    retention_seconds: text(tenant?.retention_seconds),
  };
}

/** Throws an error for the person when a text is no number or rate. */
export function toLimits(text: LimitText): Limits {
  return {
    weight: toNumber("Weight", text.weight) ?? 1,
    max_running: toNumber("Most running", text.max_running),
    max_waiting: toNumber("Most waiting", text.max_waiting),
    start_rate: toRate("Starts", text.start_rate),
    enqueue_rate: toRate("Submissions", text.enqueue_rate),
    retention_seconds: toNumber("The time to keep jobs", text.retention_seconds),
  };
}

function toNumber(what: string, text: string): number | null {
  if (text.trim() === "") return null;
  const number = Number(text);
  if (!Number.isFinite(number)) throw new Error(`${what}: “${text}” is not a number.`);
  return number;
}

function toRate(what: string, text: string): Rate {
  if (text.trim() === "") return null;
  const [, count, seconds] = /^(\d+)\s*\/\s*(\d*)\s*s$/.exec(text.trim()) ?? [];
  if (!count) throw new Error(`${what}: “${text}” is not a rate such as 5/s or 100/60s.`);
  return { count: Number(count), seconds: Number(seconds || 1) };
}
