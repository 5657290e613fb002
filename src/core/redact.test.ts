import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redactFields, redactText } from "./redact.js";
import { isSecretName, rememberAddress, rememberEnvironment, secretsIn } from "./secrets.js";

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const word = (min: number, max = min + 30, alphabet = letters) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength: min, maxLength: max });

/** What a secret looks like, and the text it stands in. */
const shapes: Record<string, fc.Arbitrary<{ secret: string; text: string }>> = {
  "a token of ours": word(43, 43, `${letters}-_`).map((secret) => ({ secret, text: `owt_${secret}` })),
  "a provider's key": fc
    .tuple(
      fc.constantFrom("sk-", "sk-proj-", "ghp_", "github_pat_", "glpat-", "xoxb-", "hf_", "AIza"),
      word(20),
    )
    .map(([prefix, secret]) => ({ secret, text: `${prefix}${secret}` })),
  "an AWS key": word(16, 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567").map((secret) => ({
    secret,
    text: `AKIA${secret}`,
  })),
  "a JWT": fc
    .tuple(word(10), word(10), word(10))
    .map(([head, secret, end]) => ({ secret, text: `eyJ${head}.${secret}.${end}` })),
  "a bearer": word(8).map((end) => ({ secret: `x9${end}`, text: `Bearer x9${end}` })),
  "an address": word(3).map((secret) => ({
    secret: `${secret}!7`,
    text: `postgresql://app:${secret}!7@db:5432/x`,
  })),
  "a named value": fc
    .tuple(
      fc.constantFrom("password=", "api_key: ", "PGPASSWORD=", "client_secret=", '"token":"', "pwd='"),
      word(8),
    )
    .map(([name, end]) => ({ secret: `q7${end}`, text: `${name}q7${end}` })),
  "a private key": word(40).map((secret) => ({
    secret,
    text: `-----BEGIN EC PRIVATE KEY-----\n${secret}\n-----END EC PRIVATE KEY-----`,
  })),
};

describe("a text", () => {
  const plain = word(0, 20, "abc XYZ,.!\n\t{}");
  it.each(Object.entries(shapes))(
    "loses %s, wherever it stands, and nothing more the second time",
    (_, shape) => {
      fc.assert(
        fc.property(plain, shape, plain, (before, { secret, text }, after) => {
          const once = redactText(`${before} ${text} ${after}`);
          expect(once).not.toContain(secret);
          expect(once).toContain("[redacted]");
          expect(redactText(once)).toBe(once);
          // As it stands in JSON, and in JSON inside JSON.
          const nested = JSON.stringify({ message: JSON.stringify({ text: `${before} ${text} ${after}` }) });
          expect(redactText(nested)).not.toContain(secret);
        }),
        { numRuns: 300 },
      );
    },
  );

  it.each([
    "total_tokens: 1200, prompt_tokens=900, token: 128, max_tokens: 4096",
    'password authentication failed for user "app"',
    "$.password: Invalid input: expected string, received undefined",
    "bearer authentication is not supported; basic settings apply",
    "see https://host.example:8443/@scope/package?x=a@b and task-12345678901234567890",
    "job 01a1e0fd-ae91-76fe-8ee9-ceadfc46c915 has spec 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    'Key "secret" belongs to another job; the secret is missing; key=report-7 idempotency_key=abc',
    "Error: broken\n    at run (file:///app/jobs/token.ts:12:34)\n    at node:internal/process/task_queues:95:5",
  ])("keeps what is no secret: %s", (text) => {
    expect(redactText(text)).toBe(text);
  });

  it("keeps what stands around a value", () => {
    expect(redactText('{"user":"ann","password":"a\\"b","n":1}')).toBe(
      '{"user":"ann","password":"[redacted]","n":1}',
    );
    expect(redactText("host=db password=abc1 port=1")).toBe("host=db password=[redacted] port=1");
    expect(redactText("postgres://u:p@ss@h/db")).toBe("postgres://u:[redacted]@h/db");
    expect(redactText("Set-Cookie: id=1; theme=2\nHost: a")).toBe("Set-Cookie: [redacted]\nHost: a");
    expect(redactText("Authorization: Digest a=b, c=d")).toBe("Authorization: [redacted]");
  });

  it("takes time that grows with its length, whoever wrote it", () => {
    const pieces = [
      "://a:",
      "eyJ",
      "-eyJ-",
      "eyJaaaaaaaa.",
      "sk-",
      "bearer ",
      "Basic a",
      "-----BEGIN PRIVATE KEY-----",
      "-----END ",
      "password=",
      'password:"',
      "password='",
      "\\",
      'password\\"',
      'password="\\',
      "authorization:",
      "cookie= ",
      "secret : ",
      "a",
      " ",
      '"',
      "'",
      "token ",
      "AKIA",
      "@",
      ":",
      "=",
      "-",
      "\n",
      "api key",
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 4 }), (parts) => {
        const piece = parts.join("");
        const hostile = piece.repeat(Math.ceil(200_000 / piece.length));
        const startedAt = performance.now();
        redactText(hostile);
        // It takes milliseconds; were it quadratic, it would take minutes.
        expect(performance.now() - startedAt, piece).toBeLessThan(5_000);
      }),
      { numRuns: 200 },
    );
  }, 120_000);

  it("is cut when it is far too long", () => {
    expect(redactText("x".repeat(9_000_000)).length).toBeLessThan(2_001_000);
  });
});

describe("fields", () => {
  it("lose what has a secret name, whole, and what looks like a secret in any other", () => {
    const error = Object.assign(new Error("refused by postgres://u:pw-1@h/d"), { code: "X", apiKey: "abc" });
    const shown = redactFields({
      user: "ann",
      password: { old: "a", new: "b" },
      tokens: 17,
      list: [{ refreshToken: "abc" }, "Bearer abc123def"],
      nothing: { secret: null },
      error,
    });
    expect(shown).toMatchObject({
      user: "ann",
      password: "[redacted]",
      tokens: 17,
      list: [{ refreshToken: "[redacted]" }, "Bearer [redacted]"],
      nothing: { secret: null },
      error: {
        type: "Error",
        code: "X",
        apiKey: "[redacted]",
        message: "refused by postgres://u:[redacted]@h/d",
      },
    });
    expect(JSON.stringify(shown)).not.toContain("pw-1");
  });

  it("may lie in circles", () => {
    const circle: Record<string, unknown> = { name: "x" };
    circle.self = circle;
    expect(JSON.stringify(redactFields(circle))).toContain("[too deep]");
  });

  it.each([
    [
      "password",
      "PGPASSWORD",
      "dbPassword",
      "client_secret",
      "AWS_SECRET_ACCESS_KEY",
      "OPENAI_API_KEY",
      "apiKey",
    ],
    [
      "token",
      "refreshToken",
      "X-Auth-Token",
      "Set-Cookie",
      "authorization",
      "credentials",
      "private_key",
      "dsn",
    ],
  ])("are secret by name: %s, %s …", (...names) => {
    for (const name of names) expect(isSecretName(name), name).toBe(true);
  });

  it.each([
    "tokens",
    "max_tokens",
    "tokenCount",
    "key",
    "idempotency_key",
    "author",
    "DATABASE_URL",
    "keyboard",
  ])("%s is not", (name) => expect(isSecretName(name)).toBe(false));
});

describe("what a process or a payload knows to be secret", () => {
  it("is hidden whatever it looks like", () => {
    rememberEnvironment({
      MY_API_KEY: "plain looking value",
      PATH: "/usr/bin",
      OTHER_URL: "redis://:r3dis-pass@h",
    });
    rememberAddress("postgresql://app:p%40ss-w0rd@h/db");
    expect(redactText("it said: plain looking value")).toBe("it said: [redacted]");
    expect(redactText("r3dis-pass and p@ss-w0rd and p%40ss-w0rd")).toBe(
      "[redacted] and [redacted] and [redacted]",
    );
    expect(redactText("/usr/bin")).toBe("/usr/bin");
  });

  it("is not a word that everybody uses", () => {
    rememberAddress("postgresql://postgres:postgres@h/postgres");
    expect(redactText("the database postgres")).toBe("the database postgres");
  });

  it("is found in a payload under secret names", () => {
    const payload = {
      a: { password: "canary-1-pass" },
      list: [{ apiKey: ["canary-2-key"] }],
      text: "canary-3-text",
    };
    expect(secretsIn(payload)).toEqual(["canary-1-pass", "canary-2-key"]);
    expect(redactText("tried canary-1-pass", secretsIn(payload))).toBe("tried [redacted]");
  });
});
