import { Gauge, type Registry } from "prom-client";

export interface PoolUse {
  busy: number;
  idle: number;
  /** Calls that wait for a connection. */
  waiting: number;
}

/** How much of a pool of connections is in use, read at every scrape. */
export function watchPool(registry: Registry, read: () => PoolUse): void {
  new Gauge({
    name: "oracle_pool_connections",
    help: "Connections to the database, busy or idle.",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      const { busy, idle } = read();
      this.set({ state: "busy" }, busy);
      this.set({ state: "idle" }, idle);
    },
  });
  new Gauge({
    name: "oracle_pool_waiting_calls",
    help: "Calls that wait for a connection.",
    registers: [registry],
    collect() {
      this.set(read().waiting);
    },
  });
}
