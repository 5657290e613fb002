import { readdirSync, readFileSync } from "node:fs";

/** One process as /proc/PID/stat shows it. */
export interface ProcessStat {
  pid: number;
  state: string;
  group: number;
  session: number;
}

/** Every process of this machine; none where there is no /proc. */
export function readProcesses(): ProcessStat[] {
  const found: ProcessStat[] = [];
  for (const name of list()) {
    const stat = /^\d+$/.test(name) ? read(`/proc/${name}/stat`) : undefined;
    if (stat === undefined) continue;
    // The program's name is in parentheses and may hold anything, parentheses included.
    const [state = "", , group, session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ", 4);
    found.push({ pid: Number(name), state, group: Number(group), session: Number(session) });
  }
  return found;
}

/** Kilobytes of memory a process holds; of what it shares with others, all. */
export function residentKb(pid: number): number {
  return field(`/proc/${pid}/status`, /^VmRSS:\s+(\d+)/m);
}

/** The same, but of what it shares with others only its part; costs a walk over its pages. */
export function proportionalKb(pid: number): number {
  return field(`/proc/${pid}/smaps_rollup`, /^Pss:\s+(\d+)/m);
}

function field(path: string, pattern: RegExp): number {
  return Number(pattern.exec(read(path) ?? "")?.[1] ?? 0);
}

function list(): string[] {
  try {
    return readdirSync("/proc");
  } catch {
    return [];
  }
}

/** A process may end between the listing and the look. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}
