#!/usr/bin/env node
// Planner, coder, agent and evaluator in one program: what it is, it is told by its first argument.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

const [, , role, ...rest] = process.argv;
const stdin = role === "evaluator" ? "" : readFileSync(0, "utf8");
const answer = (result) => console.log(JSON.stringify({ ok: true, result }));
const stay = () => setInterval(() => {}, 1000);

const roles = {
  planner() {
    const { spec, files } = JSON.parse(stdin).input;
    console.error("planning");
    answer({ summary: `${spec.goal} in ${files.length} file` });
  },
  /** Answers with a diff, and says on stderr where it ran. */
  coder() {
    const { plan } = JSON.parse(stdin).input;
    console.error(
      `coding ${existsSync("sum.js")} ${process.env.SECRET_OF_WORKER ?? "nothing"} ${process.env.LET_THROUGH}`,
    );
    const diff = readFileSync(rest[0], "utf8");
    answer({ summary: `Done: ${plan.summary}`, diff });
  },
  /** Answers as it is told. */
  answer() {
    answer(rest[0] === "too much" ? { summary: "x".repeat(2_000_000) } : JSON.parse(rest[0]));
  },
  agent() {
    console.log(`prompt of ${stdin.length > 0 ? "some" : "no"} bytes`);
    console.error("thinking");
    writeFileSync("sum.js", "export const sum = (a, b) => a + b;\n");
    writeFileSync("notes.md", "By an agent.\n");
    if (rest[0] === "fail") process.exit(3);
  },
  /** Tells where it is by a file, and does not end by itself. */
  stay() {
    process.on("SIGTERM", () => {});
    writeFileSync(`${rest[0]}.new`, `${process.pid}\n`);
    renameSync(`${rest[0]}.new`, rest[0]);
    stay();
  },
  evaluator() {
    console.log("compiling\n{not json}");
    console.error("a warning");
    const speed = readFileSync("sum.js", "utf8").includes("a + b") ? 2 : 1;
    rmSync("sum.js");
    if (rest[0] === "say") return console.log(rest[1]);
    if (rest[0] === "fail") process.exit(4);
    const metrics = [{ name: "speed", value: speed, details: { files: existsSync("notes.md") ? 2 : 1 } }];
    console.log(JSON.stringify({ summary: "measured", metrics }, null, 2));
  },
};
roles[role]();
