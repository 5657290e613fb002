import { span } from "./time.js";

const WIDTH = 30;
const REDRAW_MS = 100;

/** A line on the terminal's stderr that is drawn over and over; draws nothing anywhere else. */
export class ProgressBar {
  private readonly startedAt = performance.now();
  private drawnAt = Number.NEGATIVE_INFINITY;
  private readonly shown = process.stderr.isTTY;

  /** `total` in the unit of `done`; unknown for a pipe. */
  constructor(private readonly total: number | undefined) {}

  update(done: number, jobs: number): void {
    if (!this.shown || performance.now() - this.drawnAt < REDRAW_MS) return;
    this.drawnAt = performance.now();
    const elapsed = (this.drawnAt - this.startedAt) / 1000;
    const rate = `${jobs.toLocaleString("en")} jobs, ${Math.round(jobs / Math.max(elapsed, 0.1)).toLocaleString("en")}/s`;
    process.stderr.write(`\r${this.bar(done, elapsed)}${rate}\u001b[K`);
  }

  /** Leaves the line empty for what follows. */
  clear(): void {
    if (this.shown) process.stderr.write("\r\u001b[K");
  }

  private bar(done: number, elapsed: number): string {
    if (!this.total) return "";
    const part = Math.min(1, done / this.total);
    const left = part > 0 ? `, ${span(elapsed / part - elapsed)} left` : "";
    const filled = Math.round(part * WIDTH);
    return `[${"#".repeat(filled)}${"·".repeat(WIDTH - filled)}] ${Math.floor(part * 100)}%${left}  `;
  }
}
