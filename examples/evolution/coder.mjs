// The coder of this example, in place of a model: has a list of rewrites, good, bad and broken, and tries one per job.
// Started by `oracle-worker evolve --coder "node …/coder.mjs"` in the job's worktree; docs/protocol.md says how they talk.
import { readFileSync } from "node:fs";
import { rewrites } from "./rewrites.mjs";

const { input } = JSON.parse(readFileSync(0, "utf8"));
const source = readFileSync("words.js", "utf8");

/** The lines from a comment to the next blank line or the function's end. */
const part = (name) => new RegExp(`  // ${name}\n.*?(?=\n\n|\n}\n)`, "s").exec(source)?.[0] ?? "";

/** As blocks that say what to look for and what to put in its place. */
const block = ({ file = "words.js", search, replace }) =>
  `${file}\n<<<<<<< SEARCH\n${search}\n=======\n${replace}\n>>>>>>> REPLACE\n`;

// "generation 2, candidate 3 of 4" is the seventh job.
const [generation, candidate, population] = input.spec.iteration_hint.match(/\d+/g).map(Number);
const number = (generation - 1) * population + candidate - 1;

// Each job tries the next. Whether it is any good the coder does not know; only that it is not there yet.
const upcoming = [...rewrites.slice(number % rewrites.length), ...rewrites];
const { name, summary, ...rewrite } = upcoming.find(({ replace }) => !source.includes(replace));
const edits = block(name ? { search: part(name), ...rewrite } : rewrite);

process.stdout.write(JSON.stringify({ ok: true, result: { summary, message: summary, edits } }));
