import { stripVTControlCharacters } from "node:util";

/** A table on the terminal that is drawn over itself. It keeps to the screen, or its beginning could not be found again. */
export class LiveTable {
  private drawn = 0;

  draw(text: string): void {
    // Some terminals say 0 where they do not know.
    const columns = process.stdout.columns || 80;
    const rows = process.stdout.rows || 24;
    const [titles = "", ...all] = text.split("\n");
    const lines = [titles, ...all.slice(-Math.max(1, rows - 3))].map((line) => cut(line, columns - 1));
    const up = this.drawn === 0 ? "" : `\u001b[${this.drawn}A\u001b[J`;
    process.stdout.write(`${up}${lines.join("\n")}\n`);
    this.drawn = lines.length;
  }

  /** Leaves what is drawn as it is: something else was written below. */
  leave(): void {
    this.drawn = 0;
  }
}

/** A line that is too long loses its colours with its end. */
function cut(line: string, width: number): string {
  const plain = stripVTControlCharacters(line);
  return plain.length > width ? `${plain.slice(0, width - 1)}…` : line;
}
