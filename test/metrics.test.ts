import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../dist/embedded/port.js";
import { useServer } from "./support/http.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { handlers, runCli } from "./support/process.js";
import { startHandler } from "./support/run.js";

// What a real worker and a real server show to Prometheus, and what documentation, dashboard and alerts say of it.

const db = useTestDatabase();
const server = useServer(db);
const queue = "metrics";
const read = (path: string) => readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), "utf8");

/** A scrape: the labels of each metric that has a sample. */
type Scrape = Map<string, Set<string>>;

function parse(page: string): Scrape {
  const scrape: Scrape = new Map();
  for (const [, name = "", labels = ""] of page.matchAll(/^([a-z_]\w*)(?:\{(.*)\})? \S+$/gm)) {
    const known = scrape.get(name) ?? new Set();
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label);
    scrape.set(name, known);
  }
  return scrape;
}

/** Our own metrics as the documentation lists them: a histogram is one, `le` is its business. */
function ours(scrape: Scrape): Record<string, string[]> {
  const own = [...scrape].filter(([name]) => name.startsWith("oracle_") && !/_(sum|count)$/.test(name));
  const entries = own.map(([name, labels]) => [
    name.replace(/_bucket$/, ""),
    [...labels].filter((label) => label !== "le").sort(),
  ]);
  return Object.fromEntries(entries);
}

/** Rows of the table in the documentation: name, labels, who shows it. */
function documented(where: "worker" | "server"): Record<string, string[]> {
  const rows = [...read("docs/operations.md").matchAll(/^\| `(oracle_\w+)` \|([^|]*)\|([^|]*)\|/gm)];
  const shown = rows.filter(([, , , who = ""]) => who.includes(where));
  return Object.fromEntries(
    shown.map(([, name, labels = ""]) => [
      name,
      [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label).sort(),
    ]),
  );
}

let workerPage = "";
let serverPage = "";

beforeAll(async () => {
  const port = await freePort(0);
  const env = { DATABASE_URL: db.url, HEALTH_PORT: String(port), POLL_INTERVAL: "100ms" };
  runCli(["work", "--handlers", handlers, "--queues", queue], env);
  const page = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined);
    return (await response?.text()) ?? "";
  };
  const plan = await startHandler(
    db,
    async ({ plan }) => {
      await plan([{ key: "pay", kind: "idempotent", request: {} }]);
      return null;
    },
    { approve: "person" },
  );
  await plan.rested();
  await db.oracle.enqueue("quick", { n: 1 }, { queue: "nobody-serves-this" });
  // Its process dies: whoever runs it next counts the retry, and is still there to be asked.
  const file = join(mkdtempSync(join(tmpdir(), "oracle-worker-")), "runs");
  const crashed = await db.oracle.enqueue("poison-once", { file }, { queue });
  await crashed.result({ timeoutSeconds: 120 });
  await until("what was counted", async () => {
    workerPage = await page();
    return workerPage.includes("oracle_job_retries_total{") && workerPage.includes("oracle_job_run_seconds_");
  });
  const token = await server.token("viewer");
  const response = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toContain("version=0.0.4");
  serverPage = await response.text();
  await plan.stop();
}, 240_000);

describe("a worker's metrics", () => {
  it("are those of the documentation, with their labels", () => {
    expect(ours(parse(workerPage))).toEqual(documented("worker"));
  });

  it("count claims, retries by cause, held jobs and connections", () => {
    expect(workerPage).toMatch(/^oracle_jobs_claimed_total\{queue="metrics"\} [1-9]/m);
    expect(workerPage).toContain('oracle_job_retries_total{type="poison-once",cause="WORKER_CRASHED"} 1');
    expect(workerPage).toContain('oracle_held_jobs{reason="awaiting approval"} 1');
    expect(workerPage).toMatch(/^oracle_pool_connections\{state="(busy|idle)"\} [1-9]/m);
  });
});

describe("a server's metrics", () => {
  it("are those of the documentation, with their labels", () => {
    expect(ours(parse(serverPage))).toEqual(documented("server"));
  });

  it("tell of every tenant's queues, and so are for a token of all tenants only", async () => {
    expect(serverPage).toContain('oracle_queue_ready_jobs{queue="nobody-serves-this"} 1');
    expect(serverPage).toContain('oracle_held_jobs{reason="awaiting approval"} 1');
    const bound = await server.token("admin", "team-a");
    const ask = (headers: Record<string, string>) => fetch(`${server.url}/metrics`, { headers });
    for (const [response, status] of [
      [await ask({}), 401],
      [await ask({ authorization: "Bearer wrong" }), 401],
      [await ask({ authorization: `Bearer ${bound}` }), 403],
    ] as const) {
      expect(response.status).toBe(status);
      expect(await response.text()).not.toContain("oracle_");
    }
  });
});

describe.each(["deploy/grafana-dashboard.json", "deploy/prometheus-alerts.yaml"])("%s", (file) => {
  const used = (text: string) => [...text.matchAll(/\b((?:oracle|nodejs|process)_\w+)\b(?:\{([^}]*)\})?/g)];

  it("asks only for metrics and labels that exist", () => {
    const [worker, other] = [parse(workerPage), parse(serverPage)];
    const found = used(read(file));
    expect(found.length).toBeGreaterThan(5);
    for (const [, name = "", matchers = ""] of found) {
      const labels = worker.get(name) ?? other.get(name);
      expect(labels, `${name} in ${file}`).toBeDefined();
      for (const [, label = ""] of matchers.matchAll(/(\w+)=/g)) expect(labels, name).toContain(label);
    }
  });

  it("watches waiting, lost and held work", () => {
    const names = new Set(used(read(file)).map(([, name]) => name));
    for (const name of ["oracle_queue_oldest_seconds", "oracle_leases_lost_total", "oracle_held_jobs"])
      expect(names).toContain(name);
  });
});
