// The evaluator of this example: runs in a job's worktree, lets the tests decide whether the commit counts, and measures it.
// It lies outside the repository, so that no coder can change how it judges.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Its exit code and the last line of stderr are the verdict. */
function refuse(why) {
  process.stderr.write(`${why}\n`);
  process.exit(1);
}

function run(program, ...args) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  process.stderr.write(stderr);
  return { status, stdout };
}

// Tests and benchmark are the yardstick.
const changed = run("git", "status", "--porcelain", "--untracked-files=all")
  .stdout.split("\n")
  .filter(Boolean);
const others = changed.map((line) => line.slice(3)).filter((file) => file !== "words.js");
if (others.length > 0) refuse(`only words.js may change, not ${others.join(", ")}`);

const tests = run(process.execPath, "--test");
// A file that cannot be loaded goes by its path.
if (tests.status !== 0) refuse(`a test fails: ${/^ *not ok \d+ - (?:.*\/)?(.*)/m.exec(tests.stdout)?.[1]}`);

const { cpu_ms } = JSON.parse(run(process.execPath, "bench.js").stdout);
const lines = readFileSync("words.js", "utf8").trimEnd().split("\n").length;

process.stdout.write(
  JSON.stringify({
    summary: `the tests pass; ${cpu_ms} ms of computing`,
    metrics: [
      { name: "cpu_ms", value: cpu_ms, unit: "ms", higher_is_better: false },
      { name: "lines", value: lines, higher_is_better: false },
    ],
  }),
);
