// examples/handlers/nearest.ts: heavy computing in TypeScript. In a thread it blocks no other job and can be stopped.

import { defineJob } from "oracle-worker";
import { z } from "zod";

const vector = z.array(z.number()).min(1);

export const nearest = defineJob({
  type: "nearest_vectors",
  isolation: "thread",
  input: z.object({ query: vector, vectors: z.array(vector), most: z.int().min(1).default(3) }),
  output: z.array(z.object({ index: z.int(), similarity: z.number() })),
  timeoutSeconds: 60,
  run({ input, log }) {
    log.info("comparing", { vectors: input.vectors.length });
    return input.vectors
      .map((candidate, index) => ({ index, similarity: cosine(input.query, candidate) }))
      .sort((a, b) => b.similarity - a.similarity)
      .slice(0, input.most);
  },
});

function cosine(a: number[], b: number[]): number {
  const dot = (x: number[], y: number[]) => x.reduce((sum, value, n) => sum + value * (y[n] ?? 0), 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
