import { connect as connectTcp } from "node:net";
import { describe, expect, it } from "vitest";
import { startHttp } from "../dist/cli/http.js";
import { DevAuthenticator } from "../dist/http/auth.js";
import { isLoopback } from "../dist/http/listen.js";
import { createLogger } from "../dist/observe/log.js";
import { useServer } from "./support/http.js";
import { useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const server = useServer(db);

/** Sends bytes and gives what comes back until the server closes or `enough` has come. */
function raw(
  head: string,
  body?: (write: (chunk: string) => boolean) => void,
  enough = /\r\n\r\n/,
): Promise<string> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connectTcp(Number(port), hostname, () => {
      socket.write(head);
      body?.((chunk) => socket.writable && socket.write(chunk));
    });
    socket.setEncoding("utf8");
    socket.setTimeout(20_000, () => reject(new Error(`no answer: ${answer}`)));
    socket.on("data", (text: string) => {
      answer += text;
      if (enough.test(answer)) socket.destroy();
    });
    socket.on("error", (error) => (answer === "" ? reject(error) : resolve(answer)));
    socket.on("close", () => resolve(answer));
  });
}

const HUNDRED_MB = 100 * 1024 * 1024;

describe("a body of 100 MB", () => {
  it.each([
    ["without a token", () => Promise.resolve(""), 401],
    ["with one", async () => `authorization: Bearer ${await server.token("operator")}\r\n`, 413],
  ])("is refused before it is sent, %s", async (_who, header, status) => {
    const head = `POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\n${await header()}content-type: application/json\r\n`;
    // Nothing of the body is ever sent: the head alone is answered.
    const announced = await raw(`${head}content-length: ${HUNDRED_MB}\r\n\r\n`);
    expect(announced).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(announced).toMatch(/connection: close/i);
  });

  it("is refused while it is sent in pieces of unknown number", async () => {
    const token = await server.token("operator");
    const head = `POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
    const piece = `10000\r\n${" ".repeat(0x10000)}\r\n`;
    let sent = 0;
    const answer = await raw(head, (write) => {
      const timer = setInterval(() => {
        if (!write(piece)) clearInterval(timer);
        sent += 0x10000;
      }, 1);
    });
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(sent).toBeLessThan(HUNDRED_MB / 10);
  });
});

describe("a body", () => {
  const post = async (body: string | Uint8Array, type = "application/json") => {
    const token = await server.token("operator");
    const response = await server.fetch("/jobs", {
      method: "POST",
      token,
      headers: { "content-type": type },
      body,
    });
    return { status: response.status, ...((await response.json()) as object) };
  };
  const wrap = (value: string) => `{"type": "x", "input": {"a": [1, ${value}]}}`;

  it.each([
    ["NaN", "INVALID_JSON"],
    ["1e400", "PAYLOAD_REJECTED"],
    ["9007199254740993", "PAYLOAD_REJECTED"],
    ['"\\ud800"', "PAYLOAD_REJECTED"],
    ['"\\u0000"', "PAYLOAD_REJECTED"],
    ['{"b": 1, "b": 2}', "PAYLOAD_REJECTED"],
  ])("with %s is refused with its path", async (value, code) => {
    expect(await post(wrap(value))).toMatchObject({
      status: 422,
      error: { code, field: expect.stringMatching(/^\$/) },
    });
  });

  it("that is deep, no JSON, no UTF-8 or of another kind is refused", async () => {
    expect(await post(wrap("[".repeat(6000) + "]".repeat(6000)))).toMatchObject({
      error: { code: "PAYLOAD_TOO_DEEP" },
    });
    expect(await post("{")).toMatchObject({ status: 422, error: { code: "INVALID_JSON" } });
    expect(await post("")).toMatchObject({ status: 422 });
    expect(await post(new Uint8Array([0x22, 0xff, 0x22]))).toMatchObject({
      status: 422,
      error: { code: "INVALID_JSON" },
    });
    expect(await post("type=x", "application/x-www-form-urlencoded")).toMatchObject({ status: 422 });
    expect(await post("<x/>", "text/plain")).toMatchObject({ status: 422 });
  });

  it("of the largest input fits, one byte more does not", async () => {
    const limit = db.oracle.settings.MAX_PAYLOAD_BYTES;
    const input = (length: number) => `{"type": "large", "input": ${JSON.stringify("x".repeat(length - 2))}}`;
    expect(await post(input(limit))).toMatchObject({ status: 201 });
    expect(await post(input(limit + 1))).toMatchObject({ status: 413, error: { code: "PAYLOAD_TOO_LARGE" } });
  });

  it("cannot reach a prototype", async () => {
    expect(await post('{"type": "x", "input": 1, "__proto__": {"queue": "evil"}}')).toMatchObject({
      status: 422,
    });
    const token = await server.token("viewer");
    expect((await server.fetch("/jobs?__proto__=1", { token })).status).toBe(422);
    expect((await server.fetch("/jobs?constructor=1", { token })).status).toBe(422);
  });
});

describe("every answer", () => {
  it.each(["/", "/api/v1/openapi.json", "/api/v1/jobs", "/healthz", "/nowhere", "/api/v1/nowhere"])(
    "of %s carries the headers that keep browsers in check",
    async (path) => {
      const { headers } = await fetch(`${server.url}${path}`);
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|\*|data:/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("access-control-allow-origin")).toBeNull();
    },
  );

  it("of the probes tells no more than that", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const response = await fetch(`${server.url}${path}`);
      expect([response.status, await response.text()]).toEqual([200, "ok\n"]);
    }
  });
});

describe("a browser's session", () => {
  const login = async (body: unknown, headers: Record<string, string> = {}) =>
    server.fetch("/session", {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const cookieOf = (response: Response) => (response.headers.get("set-cookie") ?? "").split(";")[0] as string;

  it("is a cookie that no script reads and no other site sends", async () => {
    const response = await login({ token: await server.token("operator", "web") });
    expect(await response.json()).toMatchObject({ role: "operator", tenant_id: "web", via: "cookie" });
    const set = response.headers.get("set-cookie") ?? "";
    expect(set).toMatch(/; HttpOnly/);
    expect(set).toMatch(/; SameSite=Strict/);
    const session = await server.fetch("/session", { headers: { cookie: cookieOf(response) } });
    expect(await session.json()).toMatchObject({ role: "operator", via: "cookie" });
    const out = await server.fetch("/session", { method: "DELETE", headers: { cookie: cookieOf(response) } });
    expect(out.status).toBe(204);
    expect(out.headers.get("set-cookie")).toMatch(/Max-Age=0/);
    expect((await login({ token: "owt_wrong" })).status).toBe(401);
    expect((await login({ code: "guess" })).status).toBe(401);
  });

  it("changes things from our own pages only", async () => {
    const cookie = cookieOf(await login({ token: await server.token("operator") }));
    const host = new URL(server.url).host;
    const post = (headers: Record<string, string>) =>
      server.fetch("/jobs", {
        method: "POST",
        headers: { cookie, "content-type": "application/json", ...headers },
        body: '{"type": "x", "input": 1}',
      });
    const own = [{ "sec-fetch-site": "same-origin" }, { origin: `http://${host}` }];
    for (const headers of own) expect((await post(headers)).status).toBe(201);
    const foreign = [
      {},
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" },
      { origin: "http://evil.example" },
      { origin: "null" },
      { origin: `http://${host}.evil.example` },
    ];
    for (const headers of foreign) expect((await post(headers)).status, JSON.stringify(headers)).toBe(403);
    // A token in a header was put there by whoever holds it, so it may come from anywhere.
    const bearer = {
      authorization: `Bearer ${await server.token("operator")}`,
      "sec-fetch-site": "cross-site",
    };
    expect((await post({ ...bearer, cookie: "" })).status).toBe(201);
    expect((await login({ token: "x" }, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  });
});

describe("dev's login address", () => {
  it("works once", async () => {
    let code = "";
    const dev = await startHttp({
      oracle: db.oracle,
      logger: createLogger("silent"),
      address: { host: "127.0.0.1", port: 0 },
      authenticator: (tokens) => {
        const authenticator = new DevAuthenticator(tokens);
        code = authenticator.code;
        return authenticator;
      },
    });
    const login = () =>
      fetch(`${dev.url}/api/v1/session`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ code }),
      });
    const first = await login();
    expect(await first.json()).toMatchObject({ role: "admin", tenant_id: null, via: "cookie" });
    expect((await login()).status).toBe(401);
    const cookie = (first.headers.get("set-cookie") ?? "").split(";")[0] as string;
    expect((await fetch(`${dev.url}/api/v1/tokens`, { headers: { cookie } })).status).toBe(200);
    // A token of the database is as good as ever.
    const token = await server.token("viewer");
    const other = await fetch(`${dev.url}/api/v1/session`, { headers: { authorization: `Bearer ${token}` } });
    expect(await other.json()).toMatchObject({ role: "viewer" });
    await dev.close();
  });
});

describe("listening", () => {
  const start = (host: string, port = 0) =>
    startHttp({ oracle: db.oracle, logger: createLogger("silent"), address: { host, port } });

  it("beyond this machine needs a token", async () => {
    await db.sql("DELETE FROM oracle.tokens");
    await expect(start("0.0.0.0")).rejects.toMatchObject({ code: "ADDRESS_REFUSED" });
    await expect(start("::")).rejects.toMatchObject({ code: "ADDRESS_REFUSED" });
    const token = await server.token("viewer");
    const open = await start("0.0.0.0");
    await open.close();
    await db.sql("UPDATE oracle.tokens SET revoked_at = clock_timestamp()");
    await expect(start("0.0.0.0")).rejects.toMatchObject({ code: "ADDRESS_REFUSED" });
    expect(token).toMatch(/^owt_/);
  });

  it("where something else listens is refused by name", async () => {
    const port = Number(new URL(server.url).port);
    await expect(start("127.0.0.1", port)).rejects.toMatchObject({
      code: "ADDRESS_REFUSED",
      message: expect.stringContaining("something else listens there"),
    });
  });

  it("knows which addresses stay on this machine", () => {
    for (const host of ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
      expect(isLoopback(host), host).toBe(true);
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.evil.example", "::ffff:10.0.0.1"])
      expect(isLoopback(host), host).toBe(false);
  });
});
