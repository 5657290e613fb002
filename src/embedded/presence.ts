import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * A folder where each process marks its presence with an empty file of its own, named
 * `<label>-<pid>-<start time>-<nonce>`. A name appears whole or not at all, belongs to one process, and is never
 * used again; so whoever finds the process dead may remove it, with no race and whatever was killed when.
 */
export interface Presence {
  name: string;
  label: string;
  pid: number;
}

export async function enter(folder: string, label: string): Promise<Presence> {
  const nonce = randomBytes(6).toString("hex");
  const name = `${label}-${process.pid}-${startTime(process.pid) ?? "0"}-${nonce}`;
  await writeFile(join(folder, name), "", { flag: "wx" });
  return { name, label, pid: process.pid };
}

export async function leave(folder: string, presence: Presence): Promise<void> {
  await rm(join(folder, presence.name), { force: true });
}

/** Everyone still alive; the marks of the dead are swept out. */
export async function present(folder: string): Promise<Presence[]> {
  const living: Presence[] = [];
  for (const name of await readdir(folder)) {
    const [, label, pid, start] = /^([\w.]+)-(\d+)-(\d+)-[0-9a-f]+$/.exec(name) ?? [];
    if (label === undefined) continue;
    if (isAlive(Number(pid), start)) living.push({ name, label, pid: Number(pid) });
    // Another account's mark may not be ours to remove; dead it is all the same.
    else await rm(join(folder, name), { force: true }).catch(() => {});
  }
  return living;
}

/** Whether the process runs and, where the system tells, is the one that started then: pids are used again. */
export function isAlive(pid: number, start?: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, under another account.
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return false;
  }
  const found = startTime(pid);
  return found !== "dead" && (start === undefined || start === "0" || found === undefined || found === start);
}

/** Clock ticks since boot; "dead" for a zombie nobody has reaped; undefined where the system does not tell. */
function startTime(pid: number): string | undefined {
  if (process.platform !== "linux") return undefined;
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // Fields from the third on: the second is the program's name and may hold spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? "dead" : fields[19];
}
