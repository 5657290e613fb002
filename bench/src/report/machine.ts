import { cpus, loadavg, release, totalmem } from "node:os";
import type { Servers } from "../run.ts";

export interface Machine {
  cpu: string;
  cores: number;
  memoryGiB: number;
  kernel: string;
  /** Who else was busy when the run began: figures of a shared machine swing. */
  loadAtStart: number;
  node: string;
  postgres: string;
  redis: string;
}

export function describeMachine(servers: Servers): Machine {
  return {
    cpu: cpus()[0]?.model ?? "?",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    loadAtStart: Math.round((loadavg()[0] ?? 0) * 100) / 100,
    node: process.version,
    postgres: servers.postgres.version,
    redis: servers.redis?.version ?? "not installed",
  };
}

/** Starts watching all cores; the returned function gives the busy share (0..1) since then. */
export function cpuShare(): () => number {
  const before = busyAndAll();
  return () => {
    const after = busyAndAll();
    return (after.busy - before.busy) / Math.max(1, after.all - before.all);
  };
}

function busyAndAll(): { busy: number; all: number } {
  let idle = 0;
  let all = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { busy: all - idle, all };
}
