import { defineJob } from "oracle-worker";
import { z } from "zod";

/** Says everything it knows, in every way it has, and fails with it. */
export const leak = defineJob({
  type: "leak",
  input: z.object({ password: z.string(), key: z.string() }),
  output: z.null(),
  run({ input, log, progress }) {
    const { DATABASE_URL, PLAIN_API_KEY } = process.env;
    const password = decodeURIComponent(new URL(DATABASE_URL).password);
    const everything = `${input.password} ${input.key} ${DATABASE_URL} ${password} ${PLAIN_API_KEY}`;
    log.warn(`saw ${everything}`, { everything, nested: [{ apiKey: input.password }] });
    progress(0.5, everything, { everything });
    throw new Error(`failed with ${everything}`, { cause: everything });
  },
});
