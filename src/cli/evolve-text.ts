import { isFinished } from "../core/states.js";
import type { Evolved, EvolveEvent, Member } from "../evolution/evolve-events.js";
import { paint, printable, stateColour } from "./style.js";

// What `evolve` tells people, line by line.

export type Started = EvolveEvent & { event: "started" };

/** What became of it, in two lines. */
export function evolvedText(evolved: Evolved, repo: string): string {
  const { objective, unit, start, best, branch, generations, jobs, succeeded, failed } = evolved;
  const why = {
    generations: "All generations are done",
    target: "The target is reached",
    budget: "The budget is used up",
    interrupted: "Stopped; the same command goes on",
  }[evolved.stopped];
  const counts = `Generations: ${generations}. Jobs: ${jobs}, of which ${succeeded} succeeded and ${failed} failed`;
  const values = `${objective.metric} ${measured(start.value, null)} → ${measured(best.value, unit)}`;
  const nothing = isInVain(evolved) ? "Every job failed; nothing was better" : "Nothing was better";
  const found =
    best.island === null
      ? `${nothing} than the start: ${objective.metric} ${measured(start.value, unit)}`
      : `${values} in ${branch} (${best.commit.slice(0, 12)}); see git -C ${repo} diff ${start.commit.slice(0, 12)} ${branch}`;
  return `${why}. ${counts}.\n${found}`;
}

/** Nothing was found because every job failed. */
export function isInVain({ best, jobs, failed }: Evolved): boolean {
  return best.island === null && jobs > 0 && failed === jobs;
}

export function startedLine({ start, objective, unit }: Started): string {
  const better = `${objective.higherIsBetter ? "higher" : "lower"} is better`;
  return printable(`the start has ${objective.metric} ${measured(start.value, unit)}; ${better}`);
}

/** For logs and pipes: one line for each job that ended, one for each generation. */
export function lineOf(event: EvolveEvent, { objective, unit }: Started): string | undefined {
  if (event.event === "generation") {
    const { generation, best } = event;
    const where = best.island === null ? "the start" : `${best.commit.slice(0, 12)} of ${best.island}`;
    return printable(
      `generation ${generation}: best ${objective.metric} ${measured(best.value, unit)}, ${where}`,
    );
  }
  return event.event === "job" ? memberLine(event.member, unit) : undefined;
}

/** What became of a job; undefined until it has ended. */
export function memberLine(member: Member, unit: string | null): string | undefined {
  const { generation, slot, island, state, value, commit, subject, error } = member;
  if (!state || !isFinished(state)) return undefined;
  const outcome =
    state === "SUCCEEDED"
      ? `${value === null ? "not measured" : measured(value, unit)}  ${commit?.slice(0, 12)}  ${subject}`
      : error
        ? `${error.code}: ${error.message}`
        : "";
  const place = printable(`${generation}.${slot}  ${island}`);
  return `  ${place}  ${paint(state, stateColour(state))}  ${clipped(printable(outcome), 120)}`;
}

/** Four digits are enough to judge by. */
export function measured(value: number, unit: string | null): string {
  const text = String(Number(value.toPrecision(4)));
  return unit === null ? text : `${text} ${unit}`;
}

function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
