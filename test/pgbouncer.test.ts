import { connect, createWorker, type Oracle } from "oracle-worker";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { WorkerEvent } from "../dist/core/events.js";
import { checkSchema } from "../dist/store/check-schema.js";
import { Database } from "../dist/store/database.js";
import { list } from "../dist/store/list.js";
import { withOwner } from "../dist/store/owner.js";
import { createToken, verifyToken } from "../dist/store/tokens.js";
import { echo } from "./support/jobs.js";
import { type TestLogin, useLogins } from "./support/logins.js";
import { useTestDatabase } from "./support/oracle.js";
import { hasPgbouncer, Pgbouncer } from "./support/pgbouncer.js";

// Everything through a real PgBouncer in transaction mode, which gives each transaction any connection: two of them
// per login, so that whatever one transaction left behind another would find.

const db = useTestDatabase();
const login = useLogins(db);

describe.skipIf(!hasPgbouncer)(
  "behind PgBouncer in transaction mode (skipped where it is not installed)",
  () => {
    let bouncer: Pgbouncer;
    let worker: TestLogin;
    let program: TestLogin;
    let team: TestLogin;
    let oracle: Oracle;
    beforeAll(async () => {
      worker = await login({ roles: ["worker"] });
      program = await login({ roles: ["server"] });
      team = await login({ tenantId: "team-a" });
      const logins = [worker.url, program.url, team.url, db.url].map((url) => new URL(url));
      bouncer = await Pgbouncer.start(new URL(db.url), logins);
      oracle = await connect({ databaseUrl: bouncer.url(worker.url), directDatabaseUrl: worker.url });
    });
    afterAll(async () => {
      await oracle?.close();
      await bouncer?.stop();
    });

    it("a worker drains a queue, and is woken past the pooler", async () => {
      await checkSchema(oracle.db, true);
      const troubles: WorkerEvent[] = [];
      const running = await createWorker(oracle, {
        jobs: [echo],
        queues: ["pooled"],
        concurrency: 20,
        // Far longer than the waits below: what runs, runs because of a notice.
        pollSeconds: 600,
        onEvent: (event) => {
          if (/trouble|lost/.test(event.event)) troubles.push(event);
        },
      });
      const handles = await oracle.enqueueMany(
        echo,
        Array.from({ length: 300 }, (_, n) => ({ n })),
        { queue: "pooled", keys: Array.from({ length: 300 }, (_, n) => `pooled-${n}`) },
      );
      const results = await Promise.all(handles.map((handle) => handle.result({ timeoutSeconds: 30 })));
      expect(results).toEqual(Array.from({ length: 300 }, (_, n) => ({ n })));
      await running.stop();
      expect(troubles).toEqual([]);
      const passed = await bouncer.transactions(new URL(worker.url));
      expect(passed.get(new URL(db.url).pathname.slice(1))).toBeGreaterThan(20);
    });

    it("refuses a login that would not be restricted there", async () => {
      const strong = new Database({ url: bouncer.url(db.url), directUrl: db.url, role: "worker" });
      await expect(checkSchema(strong, false)).rejects.toMatchObject({
        code: "ROLE_REFUSED",
        message: expect.stringMatching(/is a superuser, and no restricted role can be taken/),
      });
      await strong.close();
    });

    it("keeps tenants apart on shared connections, and leaves nothing on them", async () => {
      await oracle.enqueueMany(echo, [{ n: 1 }, { n: 2 }], { tenant: "team-a", queue: "idle" });
      await oracle.enqueueMany(echo, [{ n: 1 }], { tenant: "team-b", queue: "idle" });
      const server = new Database({
        url: bouncer.url(program.url),
        directUrl: program.url,
        role: "server",
        maxConnections: 20,
      });
      await checkSchema(server, true);
      const state = {
        name: "state",
        text: "SELECT pg_backend_pid() AS pid, current_setting('{schema}.tenant_id', true) AS tenant FROM {schema}.migrations LIMIT 1",
      };
      const seen = await Promise.all(
        Array.from({ length: 100 }, async (_, n) => {
          const tenant = n % 2 ? "team-a" : "team-b";
          const inside = await server.asTenant(tenant, async (own) => {
            const [row] = await own.query<{ pid: number; tenant: string }>(state, []);
            const { items } = await list(own, {});
            return {
              pid: row?.pid,
              tenants: new Set(items.map(({ tenantId }) => tenantId)),
              set: row?.tenant,
            };
          });
          // On whichever of the two connections comes next.
          const outside = await list(server, {});
          return { tenant, outside: outside.items.length, ...inside };
        }),
      );
      for (const { tenant, outside, tenants, set } of seen) {
        expect({ outside, tenants, set }).toEqual({ outside: 0, tenants: new Set([tenant]), set: tenant });
      }
      // They did share: a hundred transactions of both tenants on two connections.
      expect(new Set(seen.map(({ pid }) => pid)).size).toBeLessThanOrEqual(2);
      const { token } = await withOwner(db.oracle.db, (owner) =>
        createToken(owner, { tenantId: "team-a", role: "viewer" }),
      );
      expect(await verifyToken(server, token)).toMatchObject({ tenantId: "team-a" });
      await server.close();
    });

    it("a tenant's login has its own tenant there too, whatever is set on the connection", async () => {
      const clients = await Promise.all(
        Array.from({ length: 6 }, async () => {
          const client = new pg.Client(bouncer.url(team.url));
          await client.connect();
          return client;
        }),
      );
      for (const client of clients) {
        // Past its transaction, and so onto whoever comes next on that connection.
        await client.query("SET oracle.tenant_id = 'team-b'");
        const { rows } = await client.query("SELECT DISTINCT tenant_id FROM oracle.jobs");
        expect(rows).toEqual([{ tenant_id: "team-a" }]);
        await expect(client.query("SELECT oracle.enqueue('t', '{}', tenant_id => 'team-b')")).rejects.toThrow(
          /row-level security/,
        );
        const made = await client.query("SELECT job_id FROM oracle.enqueue('t', '{}', queue => 'idle')");
        expect((await oracle.get(made.rows[0].job_id))?.tenantId).toBe("team-a");
      }
      await Promise.all(clients.map((client) => client.end()));
    });
  },
);
