import { isFinished } from "../core/states.js";
import type { Evolved, EvolveEvent, Member } from "../evolution/evolve-events.js";
import { evolveEventJson } from "./evolve-json.js";
import { LiveTable } from "./live-table.js";
import type { Output } from "./output.js";
import { paint, printable, stateColour } from "./style.js";
import { type Column, table } from "./table.js";

export interface EvolveView {
  show(event: EvolveEvent): void;
  /** A remark beside it. */
  note(text: string): void;
}

/** Shows what happens: documents for machines, a table that grows on a terminal, lines anywhere else. */
export function openView(out: Output): EvolveView {
  if (out.json) return { show: (event) => void out.show(evolveEventJson(event), String), note: out.note };
  const live = process.stdout.isTTY ? new LiveTable() : undefined;
  const generations = new Map<number, Member[]>();
  let started: Started | undefined;
  return {
    show: (event) => {
      if (event.event === "opened") {
        void out.show({}, () =>
          printable(`experiment ${event.experiment}: measuring ${event.base.slice(0, 12)}`),
        );
        return;
      }
      if (event.event === "started") {
        started = event;
        void out.show({}, () => startedLine(event));
        return;
      }
      if (event.event === "job") note(generations, event.member);
      if (live && started) live.draw(generationTable(started, generations));
      const line = live || !started ? undefined : lineOf(event, started);
      if (line !== undefined) void out.show({}, () => line);
    },
    note: (text) => {
      out.note(text);
      live?.leave();
    },
  };
}

type Started = EvolveEvent & { event: "started" };

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
  const found =
    best.island === null
      ? `Nothing was better than the start: ${objective.metric} ${measured(start.value, unit)}`
      : `${values} in ${branch} (${best.commit.slice(0, 12)}); see git -C ${repo} diff ${start.commit.slice(0, 12)} ${branch}`;
  return `${why}. ${counts}.\n${found}`;
}

function note(generations: Map<number, Member[]>, member: Member): void {
  const known = generations.get(member.generation) ?? [];
  const others = known.filter(({ slot }) => slot !== member.slot);
  generations.set(member.generation, [...others, member]);
}

function startedLine({ start, objective, unit }: Started): string {
  const better = `${objective.higherIsBetter ? "higher" : "lower"} is better`;
  return printable(`the start has ${objective.metric} ${measured(start.value, unit)}; ${better}`);
}

/** For logs and pipes: one line for each job that ended, one for each generation. */
function lineOf(event: EvolveEvent, { objective, unit }: Started): string | undefined {
  if (event.event === "generation") {
    const { generation, best } = event;
    const where = best.island === null ? "the start" : `${best.commit.slice(0, 12)} of ${best.island}`;
    return printable(
      `generation ${generation}: best ${objective.metric} ${measured(best.value, unit)}, ${where}`,
    );
  }
  if (event.event !== "job" || !event.member.state || !isFinished(event.member.state)) return undefined;
  const { generation, slot, island, state, value, commit, subject, error } = event.member;
  const outcome =
    state === "SUCCEEDED"
      ? `${value === null ? "not measured" : measured(value, unit)}  ${commit?.slice(0, 12)}  ${subject}`
      : (error?.message ?? "");
  const place = printable(`${generation}.${slot}  ${island}`);
  return `  ${place}  ${paint(state, stateColour(state))}  ${clipped(printable(outcome), 120)}`;
}

function generationTable(started: Started, generations: Map<number, Member[]>): string {
  const { objective, unit } = started;
  const rows = [...generations].map(([generation, members]) => ({ generation, members }));
  const count = (members: Member[], ...states: string[]) =>
    members.filter(({ state }) => state !== null && states.includes(state)).length || null;
  const best = (members: Member[]) =>
    members
      .filter(({ value }) => value !== null)
      .sort((a, b) => ((a.value as number) - (b.value as number)) * (objective.higherIsBetter ? -1 : 1))[0];
  const columns: Column<(typeof rows)[number]>[] = [
    { title: "GENERATION", value: ({ generation }) => generation, align: "right" },
    { title: "JOBS", value: ({ members }) => members.length, align: "right" },
    {
      title: "RUNNING",
      value: ({ members }) => count(members, "RUNNING"),
      align: "right",
      colour: () => "cyan",
    },
    {
      title: "SUCCEEDED",
      value: ({ members }) => count(members, "SUCCEEDED"),
      align: "right",
      colour: () => "green",
    },
    {
      title: "FAILED",
      value: ({ members }) => count(members, "FAILED_TERMINAL", "CANCELLED"),
      align: "right",
      colour: () => "red",
    },
    {
      title: `BEST ${objective.metric}`,
      value: ({ members }) => {
        const value = best(members)?.value ?? null;
        return value === null ? null : measured(value, unit);
      },
      align: "right",
    },
    { title: "COMMIT", value: ({ members }) => best(members)?.commit?.slice(0, 12) ?? null },
    { title: "CHANGE", value: ({ members }) => best(members)?.subject ?? null },
  ];
  return table(rows, columns);
}

/** Four digits are enough to judge by. */
function measured(value: number, unit: string | null): string {
  const text = String(Number(value.toPrecision(4)));
  return unit === null ? text : `${text} ${unit}`;
}

function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
