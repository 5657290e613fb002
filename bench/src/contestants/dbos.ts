import pg from "pg";
import type { Contestant, Place, StepsSession } from "../types.ts";
import { ask, installedVersion } from "./support.ts";

const POOL = 20;

export const dbos: Contestant = {
  name: "dbos",
  side: "peer",
  store: "postgres",
  version: () => installedVersion("@dbos-inc/dbos-sdk"),
  settings: `workflows started directly (no queue polling), systemDatabasePoolSize ${POOL}, logging and tracing off`,
  keeps: "durable; inputs, outputs and every step's result kept; no attempt records",
  recovery: {
    documented:
      "pending workflows resume when the same executor starts again; another one needs DBOS Conductor",
    documentedSeconds: null,
    measure: false,
  },
  openSteps: open,
};

async function open(place: Place): Promise<StepsSession> {
  const { DBOS } = await import("@dbos-inc/dbos-sdk");
  const pool = new pg.Pool({ connectionString: place.postgresUrl, max: 1 });
  const workflow = DBOS.registerWorkflow(
    async (n: number, steps: number) => {
      for (let step = 0; step < steps; step++) {
        await DBOS.runStep(async () => ({ ok: true, n, step }), { name: `step-${step}` });
      }
      return { ok: true, n };
    },
    { name: "bench" },
  );
  return {
    install: async () => {
      DBOS.setConfig({
        name: "bench",
        systemDatabaseUrl: place.postgresUrl,
        systemDatabasePoolSize: POOL,
        logLevel: "error",
        tracingEnabled: false,
      });
      await DBOS.launch();
    },
    run: async (jobs, steps, atATime) => {
      let next = 0;
      const lane = async () => {
        for (let n = next++; n < jobs; n = next++) {
          const handle = await DBOS.startWorkflow(workflow)(n, steps);
          await handle.getResult();
        }
      };
      await Promise.all(Array.from({ length: atATime }, lane));
    },
    durableSteps: () => ask<number>(pool, "select count(*)::int as value from dbos.operation_outputs"),
    close: async () => {
      await DBOS.shutdown();
      await pool.end();
    },
  };
}
