// Undoes the fixes of the holes one at a time and shows each turning its named test red.
//   node test/holes/run.mjs [--only 4,5] [--why]
// Works on two copies of the tree at a time, each with a server for all its runs. --why also prints what each red test
// said.

import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { Copy, Interrupted } from "./copy.mjs";
import { holes } from "./holes.mjs";

const { values: flags } = parseArgs({
  options: { only: { type: "string" }, why: { type: "boolean", default: false } },
});
const only = flags.only?.split(",").map(Number);
const chosen = holes.filter(({ number }) => only?.includes(number) ?? true);
if (only && chosen.length !== new Set(only).size) {
  throw new Error(`--only ${flags.only}: it takes numbers from 1 to ${holes.length}, separated by commas`);
}

/**
 * @param {Copy[]} copies
 * @returns {Promise<number>} the exit code
 */
async function main(copies) {
  const left = [...chosen];
  let red = 0;
  /** @type {Promise<void> | undefined} */
  let green;
  const lanes = copies.map((copy) =>
    withServer(copy, async (databaseUrl) => {
      green ??= requireGreen(copy, databaseUrl);
      await green;
      for (let hole = left.shift(); hole; hole = left.shift()) {
        if (await turnsRed(copy, hole, databaseUrl)) red++;
      }
    }),
  );
  // One that fails ends the other too, and both are waited for: their servers must not outlive them.
  for (const lane of lanes) lane.catch(() => interrupt(copies));
  const failed = (await Promise.allSettled(lanes)).filter((lane) => lane.status === "rejected");
  const reason = failed.map((lane) => lane.reason).find((error) => !(error instanceof Interrupted));
  if (failed.length > 0) throw reason ?? new Interrupted();
  console.log(`${red} of ${chosen.length} holes turn their test red`);
  return red === chosen.length ? 0 : 1;
}

/**
 * A server of its own for each copy: roles are the whole server's, and migrations make them.
 * @param {Copy} copy
 * @param {(databaseUrl: string) => Promise<void>} work
 */
async function withServer(copy, work) {
  copy.fill(fileURLToPath(new URL("../..", import.meta.url)));
  await copy.build();
  // From the copy: the real tree's build may be missing, or older than its sources.
  const { openEmbedded } = await import(pathToFileURL(join(copy.folder, "dist/embedded/index.js")).href);
  const server = await openEmbedded({
    directory: copy.serverFolder,
    settings: { fsync: "off", max_connections: "300" },
  });
  try {
    await work(server.adminUrl);
  } finally {
    await server.release();
  }
}

/** @param {Copy[]} copies */
function interrupt(copies) {
  for (const copy of copies) copy.interrupt();
}

/**
 * A test that is red anyway would prove nothing.
 * @param {Copy} copy
 * @param {string} databaseUrl
 */
async function requireGreen(copy, databaseUrl) {
  const tests = chosen.map(({ test }) => test);
  const results = await copy.test(tests, databaseUrl);
  const faults = results.flatMap(({ status, said }, index) => {
    const { file, name } = /** @type {{ file: string, name: string }} */ (tests[index]);
    return status === "passed" ? [] : [`${basename(file)} > ${name}: ${status}\n${said}`];
  });
  if (faults.length > 0) throw new Error(`not green before anything is undone:\n${faults.join("\n")}`);
}

/**
 * @param {Copy} copy
 * @param {import("./holes.mjs").Hole} hole
 * @param {string} databaseUrl
 */
async function turnsRed(copy, hole, databaseUrl) {
  const { verdict, said } = await tryHole(copy, hole, databaseUrl).catch((error) => {
    if (error instanceof Interrupted) throw error;
    return { verdict: "error", said: error.message };
  });
  const number = String(hole.number).padEnd(2);
  console.log(`hole ${number} ${verdict.padEnd(5)} ${basename(hole.test.file)} > ${hole.test.name}`);
  const red = verdict === "red";
  if (flags.why || !red) console.log(indent(red ? (said.split("\n")[0] ?? "") : said));
  return red;
}

/**
 * Red is the named test that ran, failed, and said what it should: a patch that does not compile, or whose SQL is
 * nonsense, proves nothing.
 * @param {Copy} copy
 * @param {import("./holes.mjs").Hole} hole
 * @param {string} databaseUrl
 */
async function tryHole(copy, hole, databaseUrl) {
  const close = copy.open(hole);
  try {
    await copy.build();
    const [result] = await copy.test([hole.test], databaseUrl);
    const { status, said } = /** @type {{ status: string, said: string }} */ (result);
    if (status === "passed") return { verdict: "green", said: `still green without the fix: ${hole.title}` };
    if (status !== "failed") return { verdict: "error", said: `it did not run: ${status}\n${said}` };
    if (!hole.says.test(said))
      return { verdict: "error", said: `failed, but not with ${hole.says}:\n${said}` };
    return { verdict: "red", said };
  } finally {
    close();
  }
}

/** @param {string} text */
function indent(text) {
  return text.replace(/^/gm, "        ");
}

const copies = [new Copy(), new Copy()];
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => interrupt(copies));
try {
  process.exitCode = await main(copies);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  for (const copy of copies) copy.remove();
}
