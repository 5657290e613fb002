// The other side of the effects: an HTTP server that writes down and syncs what it receives before it acts on it, and
// kills the caller in the middle where it is asked to. It looks into the database as each call arrives, so that its log
// tells what was on record at that moment.
import { fsyncSync, openSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { isDeepStrictEqual } from "node:util";
import pg from "pg";

const log = openSync(process.env.EFFECT_LOG, "a");
const db = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 4 });
/** Key to the responses of what was performed under it. */
const performed = new Map();
let number = 0;

function note(line) {
  writeSync(log, `${JSON.stringify({ n: ++number, ...line })}\n`);
  fsyncSync(log);
}

async function recorded(key) {
  const { rows } = await db.query("SELECT state::text, request FROM oracle.effects WHERE effect_id = $1", [
    key,
  ]);
  return rows[0] ?? { state: null };
}

function killCaller(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Somebody else was faster.
  }
}

/** Only what is idempotent is recognised when it comes again. */
function perform(key, kind) {
  const before = performed.get(key) ?? [];
  if (kind === "idempotent" && before.length > 0) return before[0];
  const response = { id: `${key}/${before.length + 1}` };
  performed.set(key, [...before, response]);
  note({ event: "performed", key });
  return response;
}

async function send(request, reply) {
  const { key, kind, body, pid, kill } = request;
  const { state, request: intended } = await recorded(key);
  note({ event: "received", key, kind, body, state, asIntended: isDeepStrictEqual(intended, body) });
  if (kill === "received") return killCaller(pid);
  const response = perform(key, kind);
  if (kill === "performed") return killCaller(pid);
  reply(response);
}

/** A call that is paid for: none may come once its step is remembered. */
async function think({ jobId }, reply) {
  const { rows } = await db.query("SELECT 1 FROM oracle.steps WHERE job_id = $1 AND name = 'think'", [jobId]);
  note({ event: "thought", jobId, remembered: rows.length > 0 });
  reply({ words: ["one", "two"] });
}

function lookUp({ key }, reply) {
  const [response] = performed.get(key) ?? [];
  reply(response ? { happened: true, response } : { happened: false });
}

const routes = { "/send": send, "/think": think, "/lookup": lookUp };

const server = createServer(async (request, response) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  try {
    await routes[request.url](JSON.parse(text), (value) => response.end(JSON.stringify(value)));
  } catch (error) {
    note({ event: "broken", error: String(error) });
    response.statusCode = 500;
    response.end();
  }
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
