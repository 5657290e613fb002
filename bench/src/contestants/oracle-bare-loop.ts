import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Place } from "../types.ts";
import { loadOracle, ROOT } from "./oracle-api.ts";

/** As many as a worker claims and settles at a time. */
const BATCH = 1000;
const VERSION = "bare";

export interface BareLoop {
  drain(jobs: number): Promise<void>;
  close(): Promise<void>;
}

interface Lease {
  attemptId: string;
  input: { n: number };
}

interface Claim {
  claimId: string;
  leases: Lease[];
}

interface Database {
  with(options: object): Database;
  close(): Promise<void>;
}

/** The claim and settle statements of src/store in a loop over two connections: the next batch is claimed while the last is settled. */
export async function openBareLoop({ postgresUrl }: Place): Promise<BareLoop> {
  const api = await loadOracle();
  const oracle = (await api.connect({ databaseUrl: postgresUrl })) as unknown as {
    db: Database;
    close(): Promise<void>;
  };
  const { Claimer } = await load<{ Claimer: new (db: Database, options: object) => Claims }>(
    "worker/claimer.js",
  );
  const { settle } = await load<{ settle: Settle }>("store/settle.js");
  const { contentHash } = await load<{ contentHash(value: unknown): string }>("core/hash.js");
  const db = oracle.db.with({ role: "worker", pinPlans: true, maxConnections: 2 });
  const claimer = new Claimer(db, {
    workerId: "bare-loop",
    queues: ["default"],
    leaseSeconds: 60,
    versions: { bench: VERSION },
  });

  async function settleAll({ claimId, leases }: Claim): Promise<number> {
    if (leases.length === 0) return 0;
    const batch = leases.map((lease) => {
      const result = { ok: true, n: lease.input.n };
      const texts = { resultText: JSON.stringify(result), contentHash: contentHash(result) };
      return { lease, outcome: { kind: "succeeded", ...texts } };
    });
    return (await settle(db, batch, [claimId])).size;
  }

  return {
    drain: async (jobs) => {
      let settled = 0;
      let last: Claim = { claimId: "", leases: [] };
      while (settled < jobs) {
        const [next, done] = await Promise.all([claimer.take(BATCH), settleAll(last)]);
        settled += done;
        last = next;
      }
    },
    close: async () => {
      await db.close();
      await oracle.close();
    },
  };
}

interface Claims {
  take(want: number): Promise<Claim>;
}

type Settle = (db: Database, batch: object[], finishedClaims: string[]) => Promise<Map<string, string>>;

async function load<T>(file: string): Promise<T> {
  return (await import(pathToFileURL(join(ROOT, "dist", file)).href)) as T;
}
