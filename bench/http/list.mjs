// What one page of the job list takes, by filter, over HTTP: node bench/http/list.mjs FOLDER ROWS
// FOLDER keeps the data for the next run. Linux only, because processor time is read from /proc.
import { readFileSync } from "node:fs";
import pg from "pg";
import { quantile, startServer } from "./serve.mjs";

const [folder, rows] = process.argv.slice(2);
const AT_ONCE = 100_000;
const CALLS = 30;

const server = await startServer(folder);
try {
  await fill(Number(rows));
  const every = server.token("viewer");
  const bound = server.token("viewer", "tenant-3");
  const filters = {
    "no filter": "",
    "state, common": "state=SUCCEEDED",
    "state, rare": "state=FAILED_TERMINAL",
    "state, waiting": "state=PENDING",
    "state, retrying": "state=FAILED_RETRYABLE",
    "state, running": "state=RUNNING",
    held: "held=true",
    type: "type=type-7",
    "type, rare": "type=rare",
    "type, none": "type=nobody",
    queue: "queue=queue-3",
    "queue, rare": "queue=rare",
    "queue, none": "queue=nobody",
    tenant: "tenant=tenant-3",
    "tenant, rare": "tenant=rare",
    "tenant, none": "tenant=nobody",
    "text, a key": "text=order-500000",
    "text, in types": "text=type-1",
    "text, in errors": "text=answered%203",
    "text, nowhere": "text=nowherexyz",
  };
  const titles = ["processor ms", "fastest ms", "median ms", "rows"];
  const columns = ["all tenants", "one tenant"].flatMap((who) => titles.map((title) => `${who}: ${title}`));
  console.log(`| filter | ${columns.join(" | ")} |\n|${" --- |".repeat(columns.length + 1)}`);
  for (const [name, query] of Object.entries(filters)) {
    const cells = [await measure(every, query)];
    if (!query.startsWith("tenant")) cells.push(await measure(bound, query));
    console.log(`| ${name} | ${cells.join(" | ")} |`);
  }
} finally {
  await server.stop();
}

async function measure(token, query) {
  const ask = async () => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${server.url}/api/v1/jobs?${query}`, { headers });
    const page = await response.json();
    if (!response.ok) throw new Error(JSON.stringify(page));
    return `${page.items.length}${page.next ? "+" : ""}`;
  };
  const rows = await ask();
  const times = [];
  const before = server.processorTime();
  for (let call = 0; call < CALLS; call++) {
    const start = performance.now();
    await ask();
    times.push(performance.now() - start);
  }
  const processor = (server.processorTime() - before) / CALLS;
  const figures = [processor, Math.min(...times), quantile(times, 0.5)].map((ms) => ms.toFixed(0));
  return [...figures, rows].join(" | ");
}

async function fill(wanted) {
  const client = new pg.Client(server.databaseUrl);
  await client.connect();
  await client.query("SET session_replication_role = replica; SET synchronous_commit = off");
  const [{ n }] = (await client.query("SELECT count(*)::int AS n FROM oracle.jobs")).rows;
  const sql = readFileSync(new URL("fill.sql", import.meta.url), "utf8");
  for (let from = n + 1; from <= wanted; from += AT_ONCE) {
    await client.query(sql, [from, Math.min(from + AT_ONCE - 1, wanted), wanted]);
  }
  if (n < wanted) await client.query("VACUUM (ANALYZE)");
  await client.end();
}
