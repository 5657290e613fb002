import { type Colour, paint, printable } from "./style.js";

export interface Column<Row> {
  title: string;
  value(row: Row): string | number | null;
  colour?(row: Row): Colour | undefined;
  align?: "right";
}

/** Rows under aligned titles. Widths are of the plain text: colours come after the padding. */
export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const cells = rows.map((row) => columns.map((column) => printable(String(column.value(row) ?? "-"))));
  const widths = columns.map((column, at) =>
    Math.max(column.title.length, ...cells.map((line) => line[at]?.length ?? 0)),
  );
  const line = (texts: readonly string[], colours: readonly (Colour | undefined)[]) =>
    texts
      .map((text, at) => paint(pad(text, at, widths, columns), colours[at]))
      .join("  ")
      .trimEnd();
  const titles = columns.map((column) => column.title);
  return [
    line(
      titles,
      titles.map(() => "bold"),
    ),
    ...rows.map((row, at) =>
      line(
        cells[at] ?? [],
        columns.map((column) => column.colour?.(row)),
      ),
    ),
  ].join("\n");
}

function pad<Row>(text: string, at: number, widths: number[], columns: readonly Column<Row>[]): string {
  const width = widths[at] ?? 0;
  if (columns[at]?.align === "right") return text.padStart(width);
  return at === columns.length - 1 ? text : text.padEnd(width);
}

/** `label  value` lines with the values below each other; what is null is left out. */
export function facts(pairs: readonly (readonly [label: string, value: string | number | null])[]): string {
  const shown = pairs.filter(([, value]) => value !== null);
  const width = Math.max(...shown.map(([label]) => label.length));
  return shown
    .map(([label, value]) => `  ${paint(label.padEnd(width), "dim")}  ${printable(String(value))}`)
    .join("\n");
}
