import type { EvolveEvent, Member } from "../evolution/evolve-events.js";
import { evolveEventJson } from "./evolve-json.js";
import { lineOf, measured, memberLine, type Started, startedLine } from "./evolve-text.js";
import { LiveTable } from "./live-table.js";
import type { Output } from "./output.js";
import { printable } from "./style.js";
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
      if (live && started) live.draw(screen(started, generations));
      const line = live || !started ? undefined : lineOf(event, started);
      if (line !== undefined) void out.show({}, () => line);
    },
    note: (text) => {
      out.note(text);
      live?.leave();
    },
  };
}

function note(generations: Map<number, Member[]>, member: Member): void {
  const known = generations.get(member.generation) ?? [];
  const others = known.filter(({ slot }) => slot !== member.slot);
  generations.set(member.generation, [...others, member]);
}

/** A reason that comes again and again is known after these. */
const MOST_FAILURES = 5;

/** The table, and below it why the latest jobs failed. */
function screen(started: Started, generations: Map<number, Member[]>): string {
  const failed = [...generations.values()]
    .flat()
    .filter(({ state }) => state === "FAILED_TERMINAL" || state === "CANCELLED");
  const lines = failed.slice(-MOST_FAILURES).map((member) => memberLine(member, started.unit));
  return [generationTable(started, generations), ...lines].join("\n");
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
