// Mixed reads and enqueues from a second process: node bench/http/load.mjs FOLDER [SECONDS] [CONNECTIONS]
// Of ten calls six read one job, one lists, one asks for the figures of the overview, two enqueue.
import { fork } from "node:child_process";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { quantile, startServer } from "./serve.mjs";

if (process.send) process.once("message", load);
else await main(...process.argv.slice(2));

async function main(folder, seconds = "20", connections = "64") {
  const server = await startServer(folder);
  try {
    const order = {
      url: server.url,
      token: server.token("operator"),
      seconds: Number(seconds),
      connections: Number(connections),
    };
    const before = server.processorTime();
    const { codes, times, took } = await new Promise((resolve, reject) => {
      const client = fork(fileURLToPath(import.meta.url));
      client.once("message", resolve);
      client.once("error", reject);
      client.send(order);
    });
    const calls = times.length;
    const processor = (server.processorTime() - before) / calls;
    console.log(
      `${calls} calls in ${took.toFixed(1)} s over ${connections} connections: ${(calls / took).toFixed(0)} a second`,
    );
    console.log(`answers by status: ${JSON.stringify(codes)}`);
    console.log(`p50 ${quantile(times, 0.5).toFixed(1)} ms, p99 ${quantile(times, 0.99).toFixed(1)} ms`);
    console.log(`processor time of server and PostgreSQL: ${processor.toFixed(2)} ms a call`);
  } finally {
    await server.stop();
  }
}

async function load({ url, token, seconds, connections }) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const headers = { authorization: `Bearer ${token}` };
  const codes = {};
  const times = [];
  const ids = [];
  const call = (method, path, body) =>
    new Promise((resolve) => {
      const start = performance.now();
      const done = (code, text) => {
        codes[code] = (codes[code] ?? 0) + 1;
        times.push(performance.now() - start);
        resolve(text);
      };
      const own = body
        ? { ...headers, "content-type": "application/json", "content-length": body.length }
        : headers;
      const request = http.request(`${url}/api/v1${path}`, { method, agent, headers: own }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part) => {
          text += part;
        });
        response.on("end", () => done(response.statusCode, text));
      });
      request.on("error", (error) => done(error.code, ""));
      request.end(body);
    });
  const enqueue = async (n) => {
    const text = await call("POST", "/jobs", JSON.stringify({ type: "load", queue: "load", input: { n } }));
    if (text.startsWith("{")) ids[n % 1000] = JSON.parse(text).job_id;
  };
  await enqueue(0);
  const start = performance.now();
  const endsAt = start + seconds * 1000;
  let n = 0;
  const caller = async () => {
    while (performance.now() < endsAt) {
      const kind = n++ % 10;
      if (kind < 2) await enqueue(n);
      else if (kind === 2) await call("GET", "/jobs?queue=load&limit=20");
      else if (kind === 3) await call("GET", "/stats");
      else await call("GET", `/jobs/${ids[n % 1000] ?? ids.find(Boolean)}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, caller));
  const took = (performance.now() - start) / 1000;
  agent.destroy();
  process.send({ codes, times, took }, () => process.disconnect());
}
