import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { BulkAnswer } from "../dist/http/client.js";
import { useServer } from "./support/http.js";
import { until, useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const server = useServer(db);

async function bulk(
  body: NonNullable<RequestInit["body"]>,
  token: string,
  query = "",
): Promise<{ status: number; answers: BulkAnswer[] }> {
  const response = await server.fetch(`/jobs/bulk${query}`, {
    method: "POST",
    token,
    headers: { "content-type": "application/x-ndjson" },
    body,
    duplex: "half",
  });
  const lines = (await response.text()).split("\n").filter((line) => line !== "");
  return { status: response.status, answers: lines.map((line) => JSON.parse(line)) };
}

const line = (value: unknown) => `${JSON.stringify(value)}\n`;
const stored = async (queue: string) =>
  (await db.sql("SELECT count(*)::int AS n FROM oracle.jobs WHERE queue_name = $1", [queue]))[0]?.n;

describe("POST /jobs/bulk", () => {
  it("stores thousands and answers each line", async () => {
    const token = await server.token("operator", "bulk");
    const lines = Array.from({ length: 5000 }, (_, n) =>
      line({ type: "x", input: { n }, queue: "thousands" }),
    );
    const { status, answers } = await bulk(lines.join(""), token);
    expect(status).toBe(200);
    expect(answers).toHaveLength(5001);
    expect(answers.slice(0, -1).map((answer) => "line" in answer && answer.line)).toEqual(
      Array.from({ length: 5000 }, (_, n) => n + 1),
    );
    expect(answers.at(-1)).toEqual({ done: true, lines: 5000, stored: 5000, joined: 0, failed: 0 });
    const [row] = await db.sql(
      "SELECT count(DISTINCT job_id)::int AS n, min(tenant_id) AS tenant FROM oracle.jobs WHERE queue_name = 'thousands'",
    );
    expect(row).toEqual({ n: 5000, tenant: "bulk" });
  });

  it("goes on behind a bad line, and names what is wrong with it", async () => {
    const token = await server.token("operator");
    const key = randomBytes(4).toString("hex");
    const body = [
      line({ type: "x", input: 1, queue: "mixed", key }),
      "{ not json\n",
      "\n",
      line({ type: "x", queue: "mixed" }),
      line({ type: "x", input: 1, queue: "mixed", key }),
      line({ type: "x", input: 2, queue: "mixed", key }),
      `{"type": "x", "input": 1e400}\n`,
      `{"type": "x", "input": "${"a".repeat(1_200_000)}"}\n`,
      line({ type: "x", input: 3, queue: "mixed", tenant: "other" }),
      line({ type: "x", input: 4, queue: "mixed" }).trimEnd(),
    ].join("");
    const { answers } = await bulk(body, token);
    expect(answers).toMatchObject([
      { line: 1, created: true },
      { line: 2, error: { code: "INVALID_JSON" } },
      { line: 4, error: { code: "INVALID_ARGUMENT", field: "$.input" } },
      { line: 5, created: false },
      { line: 6, error: { code: "IDEMPOTENCY_CONFLICT" } },
      { line: 7, error: { code: "PAYLOAD_REJECTED", field: "$.input" } },
      { line: 8, error: { code: "PAYLOAD_TOO_LARGE" } },
      { line: 9, error: { code: "INVALID_ARGUMENT", field: "$.tenant" } },
      { line: 10, created: true },
      { done: true, lines: 9, stored: 2, joined: 1, failed: 6 },
    ]);
    expect(await stored("mixed")).toBe(2);
  });

  it("answers while lines still come, and reads no faster than its answers are taken", async () => {
    const token = await server.token("operator");
    let sent = 0;
    // Lines that are refused cost little, and their answers are longer than they are.
    const some = Buffer.from("x\n".repeat(1000));
    const stop = new AbortController();
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        // Node's fetch goes on reading the body of a call that was aborted, without ever letting go of the event loop.
        if (stop.signal.aborted) return controller.close();
        controller.enqueue(
          sent++ === 0 ? Buffer.from(line({ type: "x", input: 1, queue: "endless" })) : some,
        );
      },
    });
    const response = await server.fetch("/jobs/bulk", {
      method: "POST",
      token,
      headers: { "content-type": "application/x-ndjson" },
      body: endless,
      duplex: "half",
      signal: stop.signal,
    });
    const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    const first = Buffer.from((await reader.read()).value as Uint8Array).toString();
    expect(JSON.parse(first.split("\n")[0] as string)).toMatchObject({ line: 1, created: true });
    // Nobody reads on: the answers fill what lies in between, and then nothing more is sent.
    const rest = await until(
      "the sender waits",
      async () => {
        const before = sent;
        await new Promise((resolve) => setTimeout(resolve, 700));
        return sent === before && sent;
      },
      20_000,
    );
    expect(rest).toBeGreaterThan(0);
    stop.abort();
    await reader.cancel().catch(() => {});
    await expect(server.fetch("/session", { token })).resolves.toMatchObject({ status: 200 });
  });

  it("says how much is stored when it cannot go on", async () => {
    const token = await server.token("operator");
    await server.fetch("/session", { token });
    await db.sql("ALTER FUNCTION oracle.enqueue_alike RENAME TO away");
    try {
      const { answers } = await bulk(line({ type: "x", input: 1, queue: "broken" }), token);
      expect(answers).toMatchObject([
        { done: false, lines: 1, stored: 0, error: { code: "SCHEMA_OUTDATED" } },
      ]);
    } finally {
      await db.sql("ALTER FUNCTION oracle.away RENAME TO enqueue_alike");
    }
    expect(await stored("broken")).toBe(0);
  });

  it("takes nothing else than lines, and a tenant by name only with a token for all", async () => {
    const token = await server.token("operator");
    const wrong = await server.fetch("/jobs/bulk", {
      method: "POST",
      token,
      headers: { "content-type": "application/json" },
      body: "[]",
    });
    expect(wrong.status).toBe(422);
    const named = await bulk(line({ type: "x", input: 1, queue: "named" }), token, "?tenant=by-name");
    expect(named.answers[0]).toMatchObject({ created: true });
    const [row] = await db.sql("SELECT tenant_id FROM oracle.jobs WHERE queue_name = 'named'");
    expect(row).toEqual({ tenant_id: "by-name" });
    const bound = await bulk(
      line({ type: "x", input: 1 }),
      await server.token("operator", "t"),
      "?tenant=by-name",
    );
    expect(bound.status).toBe(403);
  });
});
