import type { Churn, Metric } from "../core/evolution.js";
import { sanitizeText } from "../core/json.js";
import type { Coding, Evaluation, Plan } from "./roles.js";

/** As long as git's own tools show it whole. */
const LONGEST_SUBJECT = 72;
const LONGEST_SUMMARY = 4000;
const MOST_FILES = 20;
const MOST_HIGHLIGHTS = 5;

/** The first line of a text, cut between words where it is too long. */
export function subjectOf(text: string): string {
  const line = sanitizeText(text.trim().split("\n", 1)[0] ?? "")
    .replaceAll(/\s+/g, " ")
    .trim();
  const characters = [...line];
  if (characters.length <= LONGEST_SUBJECT) return line || "Change";
  const cut = characters.slice(0, LONGEST_SUBJECT - 1).join("");
  const space = cut.lastIndexOf(" ");
  return `${space > LONGEST_SUBJECT / 2 ? cut.slice(0, space) : cut}…`;
}

/** The commit's text: what git shows, and which job it comes from. */
export function commitMessage(subject: string, summary: string, jobId: string): string {
  const body = sanitizeText(summary).trim();
  return `${subject}\n\n${body === "" || body === subject ? "" : `${body}\n\n`}Evolution-Job: ${jobId}\n`;
}

/** The parts of a card that come from what was said. */
export function cardTexts(
  plan: Plan,
  coding: Coding,
  evaluation: Evaluation,
): { plan_summary: string; subject: string; change_summary: string; evaluation_summary: string | null } {
  const bounded = (text: string) => sanitizeText(text, LONGEST_SUMMARY);
  return {
    plan_summary: bounded(plan.summary),
    subject: subjectOf(coding.message ?? plan.summary),
    change_summary: bounded(coding.summary),
    evaluation_summary: evaluation.summary === "" ? null : bounded(evaluation.summary),
  };
}

/** The parts of a card that come from the commit: its files by how much they changed. */
export function cardFiles(churn: Churn[]): { key_files: string[]; highlights: Churn[] } {
  const lines = ({ added, deleted }: Churn) => added + deleted;
  const sorted = [...churn].sort((a, b) => lines(b) - lines(a) || (a.path < b.path ? -1 : 1));
  return {
    key_files: sorted.slice(0, MOST_FILES).map(({ path }) => path),
    highlights: sorted.slice(0, MOST_HIGHLIGHTS),
  };
}

/** One metric per name: the last value counts, what is said in detail adds up. */
export function mergeMetrics(metrics: Evaluation["metrics"]): Metric[] {
  const merged = new Map<string, Metric>();
  for (const { name, value, unit, higher_is_better, details } of metrics) {
    const before = merged.get(name);
    merged.set(name, {
      name,
      value,
      unit: unit ?? before?.unit ?? null,
      higher_is_better,
      details: details || before?.details ? { ...before?.details, ...details } : null,
    });
  }
  return [...merged.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
