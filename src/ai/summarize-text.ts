import { z } from "zod";
import { defineJob } from "../handlers/define.js";

const FIRST_WORDS = 20;

/**
 * The built-in sample. Without `max_bullets` it answers with the first twenty words as one bullet; with it, it
 * picks the sentences that say most about the text. Both offline, and the same every time.
 */
export const summarizeText = defineJob({
  type: "summarize_text",
  input: z.object({ text: z.string(), max_bullets: z.int().min(1).max(100).optional() }),
  output: z.object({ bullets: z.array(z.string()) }),
  timeoutSeconds: 120,
  run({ input }) {
    const { text, max_bullets } = input;
    return { bullets: max_bullets === undefined ? [firstWords(text)] : tellingSentences(text, max_bullets) };
  },
});

function firstWords(text: string): string {
  return text.split(/\s+/).filter(Boolean).slice(0, FIRST_WORDS).join(" ");
}

/** Words that are in every text and tell nothing about this one. */
const commonWords = new Set(
  `a about after all also an and any are as at be because been before being but by can could did do does for from
  had has have he her his how i if in into is it its just like may more most my no not of on one only or other our
  out over she should so some such than that the their them then there these they this those to too under up us
  was we were what when where which while who will with would you your`.split(/\s+/),
);

/** Scores each sentence by how often its telling words occur in the whole text, and keeps the reading order. */
function tellingSentences(text: string, most: number): string[] {
  const sentences = splitSentences(text);
  const words = sentences.map(tellingWords);
  const frequency = new Map<string, number>();
  for (const word of words.flat()) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  const score = (index: number) => {
    const own = words[index] ?? [];
    const sum = own.reduce((total, word) => total + (frequency.get(word) ?? 0), 0);
    // The root keeps long sentences from winning by length alone, and short ones by one frequent word.
    return own.length === 0 ? 0 : sum / Math.sqrt(own.length);
  };
  return sentences
    .map((sentence, index) => ({ sentence, index, score: score(index) }))
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, most)
    .sort((a, b) => a.index - b.index)
    .map(({ sentence }) => sentence);
}

/** A blank line ends a sentence too; a single line break is only where the writer's line was full. */
function splitSentences(text: string): string[] {
  const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });
  const paragraphs = text.split(/\n\s*\n/).map((paragraph) => paragraph.replace(/\s+/g, " ").trim());
  const sentences = paragraphs.flatMap((paragraph) =>
    Array.from(segmenter.segment(paragraph), ({ segment }) => segment.trim()),
  );
  return [...new Set(sentences.filter(Boolean))];
}

function tellingWords(sentence: string): string[] {
  const words = sentence.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu) ?? [];
  return words.filter((word) => word.length > 1 && !commonWords.has(word));
}
