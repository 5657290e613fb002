import type { JobContext } from "oracle-worker";
import { defineJob } from "oracle-worker";
import { z } from "zod";

/** A job that does what the test tells it, when the test tells it. */
export class Gate {
  private arrived: ((context: JobContext<{ name: string }>) => void) | undefined;
  private finish: (() => void) | undefined;
  private readonly arrival = new Promise<JobContext<{ name: string }>>((resolve) => {
    this.arrived = resolve;
  });

  readonly job;

  constructor(type: string) {
    this.job = defineJob({
      type,
      input: z.object({ name: z.string() }),
      output: z.object({ done: z.string() }),
      run: async (context) => {
        const open = new Promise<void>((resolve, reject) => {
          this.finish = resolve;
          context.signal.addEventListener("abort", () => reject(context.signal.reason), { once: true });
        });
        this.arrived?.(context);
        await open;
        return { done: context.input.name };
      },
    });
  }

  /** The context of the handler that has begun. */
  begun(): Promise<JobContext<{ name: string }>> {
    return this.arrival;
  }

  open(): void {
    this.finish?.();
  }
}
