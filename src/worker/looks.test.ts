import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Looks } from "./looks.js";

const LOOK_MS = 30;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Looks that take 30 ms each, and when they began. */
function slowLooks(): { looks: Looks; began: number[] } {
  const began: number[] = [];
  const looks = new Looks(
    async () => {
      began.push(performance.now());
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      return true;
    },
    () => {},
  );
  return { looks, began };
}

describe("looks", () => {
  it.each([
    ["a sixth", 5, 6],
    ["half", 1, 2],
  ])("take %s of the time at most, however often they are asked for", async (_, rest, times) => {
    const { looks, began } = slowLooks();
    for (let ms = 0; ms < 20_000; ms++) {
      looks.ask(rest);
      await vi.advanceTimersByTimeAsync(1);
    }
    // The first ones do not know yet how slow they are.
    const gaps = began.map((at, n) => at - (began[n - 1] ?? 0)).slice(-20);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(times * LOOK_MS);
    expect(Math.max(...gaps)).toBeLessThan(times * LOOK_MS + 5);
  });

  it("come earlier when somebody cannot wait, and are owed until then", async () => {
    const { looks, began } = slowLooks();
    for (let n = 0; n < 10; n++) {
      looks.ask(0);
      await vi.advanceTimersByTimeAsync(LOOK_MS);
    }
    expect(looks.owed).toBe(false);
    looks.ask(5);
    expect(looks.owed).toBe(true);
    expect(began).toHaveLength(10);
    looks.ask(0);
    expect(began).toHaveLength(11);
    await vi.advanceTimersByTimeAsync(LOOK_MS);
    expect(looks.owed).toBe(false);
  });

  it("are not made any more after the end", async () => {
    const { looks, began } = slowLooks();
    looks.stop();
    looks.ask(0);
    expect(began).toEqual([]);
  });
});
