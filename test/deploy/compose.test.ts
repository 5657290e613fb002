import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { settingsTable } from "../../dist/core/settings.js";
import { runAsPerson } from "../support/cli.js";
import { administer, withDatabase } from "../support/server.js";
import { readRoot, yaml } from "./files.js";

// The services' own commands, run in their order against a real server; only the hosts are others.

interface Service {
  command?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { disable?: boolean; test?: string[] };
  user?: string;
  read_only?: boolean;
  cap_drop?: string[];
  stop_grace_period?: string;
  image: string;
}
interface Compose {
  services: Record<string, Service>;
  configs: Record<string, { content: string }>;
}

const login = `app_${randomBytes(4).toString("hex")}`;
const database = `compose_${randomBytes(4).toString("hex")}`;
const given: Record<string, string> = { APP_PASSWORD: "app-password", POSTGRES_PASSWORD: "admin-password" };
const text = readRoot("docker-compose.yml").replace(/\$\{(\w+)[^}]*\}/g, (_, name: string) => {
  const value = given[name];
  if (value === undefined) throw new Error(`${name} is not in .env.example`);
  return value;
});
const { services, configs } = yaml.parse(text, { merge: true }) as Compose;
const service = (name: string) => services[name] as Service;
const ours = Object.entries(services).filter(([, { image }]) => image.startsWith("oracle-worker"));

/** The same login and database under names of this test. */
function here(environment: Record<string, string> = {}): Record<string, string> {
  const url = new URL(environment.DATABASE_URL ?? "");
  const real = new URL(withDatabase(inject("adminUrl"), database));
  if (url.username === "app") {
    real.username = login;
    real.password = url.password;
  }
  const { REDIS_URL: _, ...rest } = environment;
  return { ...rest, DATABASE_URL: real.href };
}

const runService = (name: string, more: string[] = []) => {
  const { command = [], environment } = service(name);
  const words = command.map((word) => (word === "app" ? login : word));
  return runAsPerson([...words, ...more], { env: { ...here(environment), HEALTH_PORT: "0" } });
};

beforeAll(async () => {
  await administer(inject("adminUrl"), `CREATE DATABASE ${database} ENCODING 'UTF8' TEMPLATE template0`);
  const script = configs["app-login"]?.content.replace("ROLE app ", `ROLE ${login} `) as string;
  await administer(inject("adminUrl"), script);
});
afterAll(async () => {
  await administer(inject("adminUrl"), `DROP DATABASE ${database} WITH (FORCE)`);
  await administer(inject("adminUrl"), `DROP ROLE ${login}`);
});

describe("docker-compose.yml", () => {
  it("asks for every variable that .env.example names, and no other", () => {
    const asked = [...readRoot("docker-compose.yml").matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
    const named = [...readRoot(".env.example").matchAll(/^(\w+)=/gm)].map(([, name]) => name);
    expect([...new Set(asked)].sort()).toEqual(named.sort());
  });

  it("uses settings, commands and flags that exist", async () => {
    const overview = (await runAsPerson(["--help"])).stdout;
    const known = [...overview.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name as string);
    const unknown: string[] = [];
    for (const [, { command = [], environment = {} }] of ours) {
      for (const name of Object.keys(environment)) expect(Object.keys(settingsTable)).toContain(name);
      const [name = "", ...words] = command;
      if (!known.includes(name)) {
        unknown.push(name);
        continue;
      }
      const help = (await runAsPerson([name, "--help"])).stdout;
      for (const flag of words.filter((word) => word.startsWith("--"))) expect(help).toContain(`${flag} `);
    }
    // The server's command is on its way; once it is there, its flags are checked too.
    expect(unknown).toEqual(known.includes("serve") ? [] : ["serve"]);
  });

  it("starts each service after what it needs, with little power", () => {
    for (const [name, each] of ours) {
      expect(each.read_only, name).toBe(true);
      expect(each.cap_drop, name).toEqual(["ALL"]);
    }
    expect(service("migrate").depends_on).toEqual({ postgres: { condition: "service_healthy" } });
    expect(service("roles").depends_on).toEqual({ migrate: { condition: "service_completed_successfully" } });
    for (const name of ["worker", "server"])
      expect(service(name).depends_on?.roles).toEqual({ condition: "service_completed_successfully" });
    for (const name of ["postgres", "redis"]) expect(service(name).healthcheck?.test).toBeDefined();
    expect(service("worker").environment?.STRICT_ROLES).toBe("1");
    const grace = Number.parseInt(service("worker").environment?.SHUTDOWN_GRACE ?? "", 10);
    expect(Number.parseInt(service("worker").stop_grace_period ?? "", 10)).toBeGreaterThanOrEqual(grace + 10);
  });

  it("migrates, grants and works with the login that can do no more", async () => {
    expect((await runService("worker", ["--drain"])).stderr).toContain("ROLE_REFUSED");
    expect(await runService("migrate")).toMatchObject({ code: 0, stderr: "" });
    expect(await runService("roles")).toMatchObject({ code: 0, stderr: "" });
    const env = here(service("worker").environment);
    const input = JSON.stringify({ text: "One. Two." });
    const enqueued = await runAsPerson(["enqueue", "summarize_text", "--input", input, "--json"], { env });
    expect(enqueued.code).toBe(0);
    const worked = await runService("worker", ["--drain"]);
    expect(worked.code, worked.stderr).toBe(0);
    const shown = await runAsPerson(["jobs", "result", String(enqueued.json.job_id), "--json"], { env });
    expect(shown.code, shown.stderr).toBe(0);
  });
});
