import type { CommitCard } from "../core/evolution.js";
import type { Plan } from "./roles.js";
import type { EvolutionSpec } from "./spec.js";

/** What a coder is told, as a text. An agent's words are not read, so it is told of one way only. */
export function makePrompt(
  spec: EvolutionSpec,
  plan: Plan,
  inspirations: CommitCard[],
  isAgent: boolean,
): string {
  const sections: [string, string[]][] = [
    ["Goal", [spec.goal]],
    ["Plan", [plan.summary, ...(plan.details ? ["", plan.details] : [])]],
    ["Constraints", bullets(spec.constraints)],
    ["Acceptance criteria", bullets(spec.acceptance_criteria)],
    ["Notes", bullets(spec.notes)],
    ["Iteration", spec.iteration_hint ? [spec.iteration_hint] : []],
    ["What other attempts achieved", inspirations.flatMap(describeCard)],
    ["How to answer", isAgent ? howToEdit : howToAnswer],
  ];
  return sections
    .filter(([, lines]) => lines.length > 0)
    .map(([title, lines]) => `# ${title}\n\n${lines.join("\n")}\n`)
    .join("\n");
}

const howToEdit = [
  "Change the files of this repository so that the goal is reached: edit them yourself, in the folder you run in. What",
  "you write to stdout is kept, but no changes are taken from it.",
];

const howToAnswer = [
  "Change the files of this repository so that the goal is reached. Either edit them yourself, or answer with",
  "search/replace blocks, each after a line with the file's path:",
  "",
  "path/to/file",
  "<<<<<<< SEARCH",
  "lines as they are now, enough of them to be found exactly once",
  "=======",
  "lines as they are to be",
  ">>>>>>> REPLACE",
];

const bullets = (texts: string[]) => texts.map((text) => `- ${text}`);

function describeCard({ subject, change_summary, metrics, highlights }: CommitCard): string[] {
  const measured = metrics.map(({ name, value, unit }) => `${name} ${value}${unit ? ` ${unit}` : ""}`);
  const files = highlights.map(({ path, added, deleted }) => `${path} (+${added} -${deleted})`);
  return [
    `- ${subject}`,
    ...[change_summary, measured.join(", "), files.join(", ")]
      .filter((line) => line !== "")
      .map((line) => `  ${line.replaceAll("\n", "\n  ")}`),
  ];
}
