import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { withLock } from "./lock.js";
import { enter, present } from "./presence.js";

vi.setConfig({ testTimeout: 30_000 });

/** Adds one to a counter, ten times, reading and writing with a pause between: any overlap loses a count. */
const COUNT = `
const [folder, counter] = process.argv.slice(1);
for (let round = 0; round < 10; round++) {
  await withLock(folder, async () => {
    const before = Number(await readFile(counter, "utf8"));
    await new Promise((resolve) => setTimeout(resolve, 2));
    await writeFile(counter, String(before + 1));
  });
}
`;
const HOLD = `await withLock(process.argv[1], async () => { console.log("held"); await new Promise(() => setTimeout(() => {}, 1e6)); });`;

let base: string;
let folder: string;
const children: ChildProcess[] = [];

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "oracle-lock-"));
  folder = join(base, "locks");
  await mkdir(folder);
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await rm(base, { recursive: true, force: true });
});

it("lets one process at a time in, while others are killed holding the lock or waiting for it", async () => {
  const counter = join(base, "counter");
  await writeFile(counter, "0");
  const workers = [1, 2, 3, 4].map(() => start(COUNT, folder, counter));
  const ended = Promise.all(workers.map((worker) => once(worker, "exit")));
  for (let victim = 0; victim < 4; victim++) {
    const holder = start(HOLD, folder);
    const waiter = start(HOLD, folder);
    await Promise.race([holder, waiter].map((child) => once(child.stdout ?? child, "data")));
    holder.kill("SIGKILL");
    waiter.kill("SIGKILL");
  }
  expect((await ended).map(([code]) => code)).toEqual([0, 0, 0, 0]);
  expect(await readFile(counter, "utf8")).toBe("40");
  await withLock(folder, async () => {
    expect(await present(folder)).toHaveLength(1);
  });
  expect(await readdir(folder)).toEqual([]);
});

it("takes turns within one process, and passes errors on", async () => {
  let inside = 0;
  const rounds = Array.from({ length: 20 }, () =>
    withLock(folder, async () => {
      inside += 1;
      expect(inside).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 1));
      inside -= 1;
    }),
  );
  await Promise.all(rounds);
  await expect(withLock(folder, () => Promise.reject(new Error("from within")))).rejects.toThrow(
    "from within",
  );
  expect(await readdir(folder)).toEqual([]);
});

it.runIf(process.platform === "linux")("knows a process from a later one with the same pid", async () => {
  const mine = await enter(folder, "user");
  const start = mine.name.split("-")[2];
  await writeFile(join(folder, mine.name.replace(`-${start}-`, `-${Number(start) - 1}-`)), "");
  await writeFile(join(folder, "something else"), "");
  expect(await present(folder)).toEqual([mine]);
  expect((await readdir(folder)).sort()).toEqual(["something else", mine.name].sort());
});

function start(script: string, ...args: string[]): ChildProcess {
  const source = `
    import { readFile, writeFile } from "node:fs/promises";
    import { createJiti } from "jiti";
    const { withLock } = await createJiti(${JSON.stringify(import.meta.url)}).import("./lock.ts");
    ${script}`;
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const child = spawn(process.execPath, ["--input-type=module", "-e", source, ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  return child;
}
