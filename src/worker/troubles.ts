import type { WorkerEventListener } from "../core/events.js";

/** Says once when something that needs the database begins to fail, and once when it works again. */
export class Troubles {
  private readonly current = new Set<string>();

  constructor(
    private readonly workerId: string,
    private readonly emit: WorkerEventListener,
  ) {}

  get any(): boolean {
    return this.current.size > 0;
  }

  /** Does the work; a failure is reported, not thrown. Whether it was done. */
  async guard(during: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      this.over(during);
      return true;
    } catch (error) {
      this.begin(during, error);
      return false;
    }
  }

  begin(during: string, error: unknown): void {
    if (this.current.has(during)) return;
    this.current.add(during);
    this.emit({ event: "database.trouble", workerId: this.workerId, during, error });
  }

  over(during: string): void {
    if (this.current.delete(during))
      this.emit({ event: "database.recovered", workerId: this.workerId, during });
  }
}
