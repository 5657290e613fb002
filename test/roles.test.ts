import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { checkSchema } from "../dist/store/check-schema.js";
import { Database } from "../dist/store/database.js";
import { grantLogin } from "../dist/store/logins.js";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { echo } from "./support/jobs.js";
import { type TestLogin, useLogins } from "./support/logins.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { administer } from "./support/server.js";

// Who may run a program, and what an installation must be like for one to start. `doctor` tells the same.

const db = useTestDatabase();
const login = useLogins(db);
const suffix = randomBytes(4).toString("hex");
const strong = `strong_${suffix}`;
let program: TestLogin;
beforeAll(async () => {
  program = await login({ roles: ["worker", "server"] });
  await administer(inject("adminUrl"), `CREATE ROLE ${strong}`);
});
afterAll(() => administer(inject("adminUrl"), `DROP ROLE ${strong}`));

/** As a program starts: with the role taken at once, or behind a pooler, where none can be taken. */
async function start(
  url: string,
  options: { strict?: boolean; pooled?: boolean; role?: "worker" | "server" } = {},
) {
  const { strict = false, pooled = false, role = "worker" } = options;
  // Another spelling of the same address: what differs from the direct one is taken for a pooler's.
  const store = new Database({ url: pooled ? `${url}?x=1` : url, directUrl: pooled ? url : undefined, role });
  await checkSchema(store, strict).finally(() => store.close());
}

/** A login that can do what the SQL says, for the time of the work. */
async function having(login: TestLogin, grant: string, revoke: string, work: () => Promise<void>) {
  await administer(inject("adminUrl"), `${grant}`.replace("$", login.name));
  await work().finally(() => administer(inject("adminUrl"), `${revoke}`.replace("$", login.name)));
}

describe("a login", () => {
  it("that has only its roles may start programs, strictly and behind a pooler", async () => {
    for (const role of ["worker", "server"] as const) {
      await start(program.url, { role, strict: true });
      await start(program.url, { role, strict: true, pooled: true });
    }
  });

  it.each([
    ["is a superuser", "ALTER ROLE $ SUPERUSER", "ALTER ROLE $ NOSUPERUSER", /is a superuser/],
    ["has BYPASSRLS", "ALTER ROLE $ BYPASSRLS", "ALTER ROLE $ NOBYPASSRLS", /has BYPASSRLS/],
    ["is the owner's", "GRANT oracle_owner TO $", "REVOKE oracle_owner FROM $", /member of oracle_owner/],
    [
      "is a member of a superuser",
      `ALTER ROLE ${strong} SUPERUSER; GRANT ${strong} TO $`,
      `REVOKE ${strong} FROM $; ALTER ROLE ${strong} NOSUPERUSER`,
      /is a member of strong_\w+, which is a superuser/,
    ],
    [
      "is a member of a role with BYPASSRLS",
      `ALTER ROLE ${strong} BYPASSRLS; GRANT ${strong} TO $`,
      `REVOKE ${strong} FROM $; ALTER ROLE ${strong} NOBYPASSRLS`,
      /which has BYPASSRLS/,
    ],
  ])("that %s is refused where it could step out", async (_what, grant, revoke, says) => {
    await having(program, grant, revoke, async () => {
      // The role was taken, and the program keeps to it.
      await start(program.url);
      for (const options of [{ strict: true }, { pooled: true }, { pooled: true, strict: true }]) {
        const refused = start(program.url, options);
        await expect(refused).rejects.toMatchObject({
          code: "ROLE_REFUSED",
          message: expect.stringMatching(says),
        });
        await expect(refused).rejects.toThrow(/migrate roles --login NAME/);
      }
      const end = await runToEnd(["work", "--drain"], {
        env: { DATABASE_URL: program.url, STRICT_ROLES: "1" },
      });
      expect(end).toMatchObject({ code: 2 });
      expect(end.stderr).toMatch(/ROLE_REFUSED/);
    });
  });

  it("that may create roles is refused where that is as good as any role", async () => {
    const [row] = await db.sql("SELECT current_setting('server_version_num')::int < 160000 AS old");
    await having(program, "ALTER ROLE $ CREATEROLE", "ALTER ROLE $ NOCREATEROLE", async () => {
      const strict = start(program.url, { strict: true });
      if (row?.old) await expect(strict).rejects.toThrow(/may create roles/);
      else await strict;
    });
  });

  it("without the rights of the role is refused with the command that mends it", async () => {
    const server = await login({ roles: ["server"] });
    await start(server.url, { role: "server", pooled: true, strict: true });
    await expect(start(server.url)).rejects.toMatchObject({
      code: "ROLE_REFUSED",
      message: expect.stringMatching(/GRANT oracle_worker TO/),
    });
    await expect(start(server.url, { pooled: true })).rejects.toMatchObject({
      code: "ROLE_REFUSED",
      message: expect.stringMatching(/does not have the rights of oracle_worker.*migrate roles --login/),
    });
    await having(server, "REVOKE oracle_server FROM $", "GRANT oracle_server TO $", async () => {
      await expect(start(server.url, { pooled: true })).rejects.toMatchObject({ code: "ROLE_REFUSED" });
    });
  });
});

describe("a login that has its role but not its rights", () => {
  it("is refused behind a pooler, and mended by migrate roles", async () => {
    const app = await login({ roles: ["worker"] });
    const [row] = await db.sql("SELECT current_setting('server_version_num')::int >= 160000 AS separate");
    // From 16 on each membership says so, before it the login does.
    const without = row?.separate ? "GRANT oracle_worker TO $ WITH INHERIT FALSE" : "ALTER ROLE $ NOINHERIT";
    await administer(inject("adminUrl"), without.replace("$", app.name));
    await start(app.url, { strict: true });
    const refused = start(app.url, { pooled: true });
    await expect(refused).rejects.toMatchObject({ code: "ROLE_REFUSED" });
    await expect(refused).rejects.toThrow(/migrate roles --login NAME.*ALTER ROLE NAME INHERIT/);
    await grantLogin(db.oracle.db, app.name, { roles: ["worker"] });
    await administer(inject("adminUrl"), `ALTER ROLE ${app.name} INHERIT`);
    await start(app.url, { pooled: true, strict: true });
  });
});

describe("an installation", () => {
  const refusal = async (what: RegExp, fix: string) => {
    await expect(start(program.url)).rejects.toMatchObject({
      code: "ROW_SECURITY",
      message: expect.stringMatching(what),
    });
    await expect(start(program.url)).rejects.toThrow(fix);
    const end = await runToEnd(["doctor"], { env: { DATABASE_URL: program.url } });
    expect(end).toMatchObject({ code: 1, error: { code: "CHECK_FAILED" } });
    expect(end.json.findings).toContainEqual({
      check: "row-level security",
      level: "fail",
      message: expect.stringMatching(what),
      fix,
    });
    // What it says is what mends it.
    await db.sql(fix);
    await start(program.url);
  };

  it.each(["jobs", "past_attempts", "attempt_reports", "results", "claims", "tokens", "tenant_logins"])(
    "where %s does not force row-level security is refused",
    async (table) => {
      for (const change of ["NO FORCE", "DISABLE"]) {
        await db.sql(`ALTER TABLE oracle.${table} ${change} ROW LEVEL SECURITY`);
        await refusal(
          new RegExp(`the table oracle.${table} does not force`),
          `ALTER TABLE oracle.${table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`,
        );
      }
    },
  );

  it("with a table of tenants' rows that somebody added is refused", async () => {
    await db.sql(`CREATE TABLE oracle."my notes" (tenant_id text, note text)`);
    await refusal(
      /the table oracle."my notes" does not force/,
      `ALTER TABLE oracle."my notes" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`,
    );
    await db.sql(`DROP TABLE oracle."my notes"; CREATE TABLE oracle.unrelated (n int)`);
    await start(program.url);
    await db.sql("DROP TABLE oracle.unrelated");
  });

  it("with a view that reads for its owner is refused", async () => {
    await db.sql(
      "CREATE VIEW oracle.all_jobs AS SELECT * FROM oracle.jobs; ALTER VIEW oracle.all_jobs OWNER TO oracle_owner",
    );
    const [row] = await db.sql("SELECT current_setting('server_version_num')::int >= 150000 AS invoker");
    await refusal(
      /the view oracle.all_jobs reads with its owner's rights/,
      row?.invoker ? "ALTER VIEW oracle.all_jobs SET (security_invoker = true)" : "DROP VIEW oracle.all_jobs",
    );
    await db.sql(
      "DROP VIEW IF EXISTS oracle.all_jobs; CREATE MATERIALIZED VIEW oracle.copy AS SELECT * FROM oracle.jobs",
    );
    await refusal(/the materialized view oracle.copy holds rows/, "DROP MATERIALIZED VIEW oracle.copy");
  });

  it("with a policy that asks for no tenant is refused", async () => {
    await db.sql("CREATE POLICY everybody ON oracle.results FOR SELECT USING (true)");
    await refusal(/the policy everybody on oracle.results/, "DROP POLICY everybody ON oracle.results");
  });
});

describe("doctor", () => {
  const doctor = (env: Record<string, string>, ...flags: string[]) =>
    runToEnd(["doctor", ...flags], { env: { DATABASE_URL: db.url, ...env } });
  const found = (end: { json: Record<string, unknown> }, check: string) =>
    (end.json.findings as { check: string; level: string; message: string; fix: string | null }[]).filter(
      (finding) => finding.check === check,
    );

  it("finds nothing wrong with a good installation and a login of its own", async () => {
    const end = await doctor({ DATABASE_URL: program.url }, "--strict");
    expect(end).toMatchObject({ code: 0, json: { healthy: true } });
    const levels = (end.json.findings as { level: string }[]).map(({ level }) => level);
    expect(new Set(levels)).toEqual(new Set(["ok"]));
    expect(found(end, "server")[0]?.message).toMatch(/^PostgreSQL \d+.*, UTF8$/);
  });

  it("warns of a login that could step out, and fails with it when asked to be strict", async () => {
    const end = await doctor({});
    expect(end.code).toBe(0);
    expect(found(end, "roles")).toMatchObject([
      { level: "warn", fix: expect.stringMatching(/migrate roles/) },
    ]);
    expect(await doctor({}, "--strict")).toMatchObject({ code: 1, error: { code: "CHECK_FAILED" } });
    expect(found(await doctor({ STRICT_ROLES: "1" }), "roles")).toMatchObject([{ level: "fail" }]);
    const person = await runAsPerson(["doctor"], { env: { DATABASE_URL: db.url } });
    expect(person.stdout).toMatch(/^warn {2}roles: .*is a superuser.*\n {6}→ give workers a login/m);
  });

  it("tells a schema that is not there, and nothing that follows from it", async () => {
    const end = await doctor({ ORACLE_SCHEMA: "nowhere" });
    expect(end).toMatchObject({ code: 1, json: { healthy: false } });
    expect(found(end, "server")).toMatchObject([{ level: "ok" }]);
    expect(found(end, "migrations")).toMatchObject([{ level: "fail", fix: "run `oracle-worker migrate`" }]);
    expect(end.json.findings).toHaveLength(2);
  });

  it("warns of work that nobody serves, until somebody does", async () => {
    await db.oracle.enqueueMany(echo, [{ n: 1 }, { n: 2 }], { queue: "doctor" });
    const end = await doctor({});
    expect(found(end, "job types")).toMatchObject([
      { level: "warn", message: "2 jobs of type echo wait in queue doctor, and no live worker serves them" },
    ]);
    const worker = await db.worker({ jobs: [echo], queues: ["doctor"] });
    await worker.drained();
    await until("the heartbeat", async () => (await db.sql("SELECT 1 FROM oracle.workers")).length > 0);
    await db.oracle.pauseQueue("doctor");
    await db.oracle.enqueue(echo, { n: 3 }, { queue: "doctor" });
    expect(found(await doctor({}), "job types")).toMatchObject([{ level: "ok" }]);
    await worker.stop();
  });

  it("finds tenants' logins that are gone, and that are programs' too", async () => {
    const mixed = await login({ tenantId: "team-a" });
    await login({ tenantId: "team-b" });
    await db.sql("INSERT INTO oracle.tenant_logins VALUES ('gone_login', 'team-c')");
    await having(mixed, "GRANT oracle_server TO $", "REVOKE oracle_server FROM $", async () => {
      expect(found(await doctor({}), "tenant logins")).toMatchObject([
        { level: "warn", message: "the login gone_login of tenant team-c is gone or has lost its role" },
        {
          level: "fail",
          message: `the login ${mixed.name} of tenant team-a also has oracle_server: it sees every tenant`,
          fix: `REVOKE oracle_server FROM ${mixed.name}`,
        },
      ]);
    });
    await db.sql("DELETE FROM oracle.tenant_logins WHERE login = 'gone_login'");
  });

  it("finds functions with the owner's rights that are open or not pinned", async () => {
    await db.sql(
      `CREATE FUNCTION oracle.peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM oracle.jobs'`,
    );
    const end = await doctor({});
    expect(found(end, "functions")).toMatchObject([
      { level: "fail", message: expect.stringMatching(/peek\(\)/) },
    ]);
    await db.sql("ALTER FUNCTION oracle.peek() SET search_path = pg_catalog, pg_temp");
    expect(found(await doctor({}), "functions")[0]?.fix).toBe(
      "REVOKE ALL ON FUNCTION oracle.peek() FROM PUBLIC",
    );
    await db.sql("REVOKE ALL ON FUNCTION oracle.peek() FROM PUBLIC");
    expect(found(await doctor({}), "functions")).toMatchObject([{ level: "ok" }]);
    await db.sql("DROP FUNCTION oracle.peek()");
  });
});
