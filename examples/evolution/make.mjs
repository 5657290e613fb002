// node examples/evolution/make.mjs FOLDER: makes a git repository with a slow function, its tests and a benchmark.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [given] = process.argv.slice(2);
if (given === undefined || existsSync(given)) {
  process.stderr.write(
    "Give the name of a folder that does not exist yet: node examples/evolution/make.mjs FOLDER\n",
  );
  process.exit(2);
}

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = resolve(given);
cpSync(here("start"), folder, { recursive: true });
const git = (...args) =>
  execFileSync("git", ["-C", folder, ...args], { stdio: ["ignore", "ignore", "inherit"] });
git("init", "--quiet", "--initial-branch", "main");
git("add", "--all");
const author = ["-c", "user.name=Example", "-c", "user.email=example@localhost"];
git(...author, "commit", "--quiet", "--message", "Count words, slowly");

process.stdout.write(`${folder} has a slow function. Improve it:

  npx oracle-worker evolve --repo '${folder}' \\
    --goal 'Make wordCounts fast and keep its tests passing' \\
    --coder "node '${here("coder.mjs")}'" \\
    --evaluate "node '${here("evaluate.mjs")}'"
`);
