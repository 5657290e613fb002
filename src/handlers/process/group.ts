import { setTimeout as sleep } from "node:timers/promises";
import { readProcesses } from "./proc.js";

/** Told which process groups exist, so that a supervisor ends those of a worker that died. */
export interface ProcessGroups {
  opened(pid: number): void;
  closed(pid: number): void;
}

/** Sends to every process of a group. One that is gone needs no signal. */
export function signalGroup(pid: number, signal: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // Nobody there.
  }
}

const SLOWEST_LOOK_MS = 50;

/** Waits until a group that was sent KILL has no process left. */
export async function untilGroupGone(pid: number): Promise<void> {
  for (let waitMs = 1; exists(pid); waitMs = Math.min(SLOWEST_LOOK_MS, waitMs * 2)) {
    // In a container whose first process buries nobody, the dead stay for ever.
    if (waitMs === SLOWEST_LOOK_MS && onlyZombies(pid)) return;
    await sleep(waitMs);
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    return false;
  }
}

function onlyZombies(group: number): boolean {
  const members = readProcesses().filter((process) => process.group === group);
  return members.length > 0 && members.every(({ state }) => state === "Z" || state === "X");
}
