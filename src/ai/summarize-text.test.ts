import { describe, expect, it } from "vitest";
import type { JobContext } from "../handlers/define.js";
import { summarizeText } from "./summarize-text.js";

const summarize = (input: { text: string; max_bullets?: number }) =>
  summarizeText.run({ input } as unknown as JobContext<never>) as { bullets: string[] };

describe("summarize_text", () => {
  it("answers with the first twenty words as one bullet", () => {
    const words = Array.from({ length: 30 }, (_, n) => `word${n}`);
    expect(summarize({ text: ` ${words.join("  \n")}` })).toEqual({
      bullets: [words.slice(0, 20).join(" ")],
    });
    expect(summarize({ text: "short" })).toEqual({ bullets: ["short"] });
    expect(summarize({ text: "" })).toEqual({ bullets: [""] });
  });

  it("picks the sentences that say most, in reading order, the same every time", () => {
    const text = `The weather was nice. Postgres holds every lease, and a lease belongs to one Postgres worker.
      Somebody laughed. A worker renews its lease in Postgres. The end.`;
    const first = summarize({ text, max_bullets: 2 });
    expect(first.bullets).toEqual([
      "Postgres holds every lease, and a lease belongs to one Postgres worker.",
      "A worker renews its lease in Postgres.",
    ]);
    expect(summarize({ text, max_bullets: 2 })).toEqual(first);
  });

  it("gives no more bullets than the text has sentences", () => {
    expect(summarize({ text: "One. Two.\n\nThree", max_bullets: 10 })).toEqual({
      bullets: ["One.", "Two.", "Three"],
    });
    expect(summarize({ text: "  ", max_bullets: 3 })).toEqual({ bullets: [] });
  });
});
