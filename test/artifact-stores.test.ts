import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { collectOrphans } from "../dist/artifacts/collect.js";
import { FolderStore } from "../dist/artifacts/folder.js";
import { openArtifactStore } from "../dist/artifacts/open.js";
import type { ArtifactStore } from "../dist/artifacts/store.js";
import { type S3Server, startS3 } from "./support/s3.js";

// The stores of artifacts' bytes: a folder, and a bucket of a real server that speaks S3.

/** A store and a hand behind its back. */
interface Place {
  open(): Promise<ArtifactStore>;
  fileOf(reference: string): string;
  stop(): Promise<void> | void;
}

const places: Record<string, () => Promise<Place>> = {
  async folder() {
    const root = mkdtempSync(join(tmpdir(), "oracle-worker-store-"));
    return {
      open: () => openArtifactStore(`file:${root}/deep/er`),
      fileOf: (reference) => join(root, "deep/er", reference),
      stop: () => rmSync(root, { recursive: true }),
    };
  },
  async s3() {
    const server = await startS3();
    for (const [name, value] of Object.entries(server.env)) vi.stubEnv(name, value);
    return {
      open: () => openArtifactStore(`s3://${server.bucket}/some/prefix`),
      fileOf: (reference) => server.fileOf(`some/prefix/${reference}`),
      stop: () => server.stop(),
    };
  },
};

async function* chunks(...texts: (string | Error)[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) {
    if (text instanceof Error) throw text;
    yield Buffer.from(text);
  }
}
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
async function readAll(store: ArtifactStore, reference: string): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of await store.get(reference)) parts.push(part);
  return Buffer.concat(parts).toString();
}
async function listed(store: ArtifactStore): Promise<string[]> {
  const found: string[] = [];
  for await (const { reference } of store.list()) found.push(reference);
  return found.sort();
}
const longAgo = (file: string, seconds: number) => {
  const at = Date.now() / 1000 - seconds;
  utimesSync(file, at, at);
};

describe.each(Object.keys(places))("a store in a %s", (kind) => {
  let place: Place;
  let store: ArtifactStore;
  beforeAll(async () => {
    place = await (places[kind] as () => Promise<Place>)();
    store = await place.open();
  });
  afterAll(async () => {
    await place.stop();
    vi.unstubAllEnvs();
  });

  it("gives back what it was given: bytes, streams, nothing at all", async () => {
    const large = "large ".repeat(500_000);
    for (const [content, text] of [
      [Buffer.from("bytes"), "bytes"],
      [chunks("a stream ", "", "in parts"), "a stream in parts"],
      [new Uint8Array(), ""],
      [chunks(large), large],
    ] as const) {
      const stored = await store.put("tenant", content);
      expect(stored).toMatchObject({ sha256: sha256(text), size: Buffer.byteLength(text) });
      expect(await store.has(stored.reference)).toBe(true);
      expect(await readAll(store, stored.reference)).toBe(text);
    }
  });

  it("names bytes by tenant and digest, never twice alike", async () => {
    const content = Buffer.from("same");
    const [a, b, other] = await Promise.all([
      store.put("one", content),
      store.put("one", content),
      store.put("../two", content),
    ]);
    expect(a.reference).toMatch(
      /^[0-9a-f]{16}\/09\/67\/0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5\./,
    );
    expect(new Set([a.reference, b.reference, other.reference]).size).toBe(3);
    expect(other.reference.slice(0, 16)).not.toBe(a.reference.slice(0, 16));
  });

  it("forgets what is removed, and does not mind to remove it again", async () => {
    const { reference } = await store.put("tenant", Buffer.from("short-lived"));
    await store.remove(reference);
    await store.remove(reference);
    expect(await store.has(reference)).toBe(false);
    await expect(store.get(reference)).rejects.toMatchObject({ code: "ARTIFACT_STORE" });
  });

  it("notices bytes that are not those of their name", async () => {
    const { reference } = await store.put("tenant", Buffer.from("genuine"));
    writeFileSync(place.fileOf(reference), "forged!");
    await expect(readAll(store, reference)).rejects.toMatchObject({ code: "VERIFY_FAILED" });
  });

  it("leaves nothing of a stream that breaks off", async () => {
    const before = await listed(store);
    const broken = store.put("tenant", chunks("half of ", new Error("the source is gone")));
    await expect(broken).rejects.toMatchObject({ code: "ARTIFACT_STORE" });
    expect(await listed(store)).toEqual(before);
  });

  it.each([
    "../../../../etc/passwd",
    "/etc/passwd",
    "incoming/../../x",
    "%2e%2e/x",
    "",
    `${"0".repeat(16)}/00/00/${"0".repeat(64)}.`,
    `${"0".repeat(16)}/00/11/${"0".repeat(64)}.${"0".repeat(36)}`,
    `${"0".repeat(16)}/00/00/${"0".repeat(64)}.${"0".repeat(36)}/../x`,
  ])("refuses %j as a reference", async (reference) => {
    for (const act of [store.get(reference), store.has(reference), store.remove(reference)]) {
      await expect(act).rejects.toMatchObject({ code: "ARTIFACT_STORE", message: /not a reference/ });
    }
  });

  it("collects what nobody needs and is older than an hour, and nothing else", async () => {
    const put = async (text: string, seconds: number) => {
      const { reference } = await store.put("tenant", Buffer.from(text));
      longAgo(place.fileOf(reference), seconds);
      return reference;
    };
    const orphan = await put("orphan", 3700);
    const needed = await put("needed", 3700);
    const inFlight = await put("in flight", 3500);
    const foreign = place.fileOf("not-of-the-store");
    writeFileSync(foreign, "somebody else's");
    longAgo(foreign, 1_000_000);
    const asked: string[] = [];
    // This machine's clock is two hours fast; only the store's counts.
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 7_200_000);
    const removed = await collectOrphans(await place.open(), async (references) => {
      asked.push(...references);
      return new Set(references.filter((reference) => reference === needed));
    });
    vi.restoreAllMocks();
    expect(asked.sort()).toEqual([orphan, needed].sort());
    expect(removed).toBe(1);
    const left = [orphan, needed, inFlight].map((reference) => existsSync(place.fileOf(reference)));
    expect(left).toEqual([false, true, true]);
    expect(existsSync(foreign)).toBe(true);
  });

  it("lists more than fits on one page", { timeout: 60_000 }, async () => {
    const before = (await listed(store)).length;
    const content = Buffer.from("many");
    for (let n = 0; n < 1100; n += 50) {
      await Promise.all(Array.from({ length: 50 }, () => store.put("crowd", content)));
    }
    const after = await listed(store);
    expect(after.length).toBe(before + 1100);
    expect(new Set(after).size).toBe(after.length);
  });
});

describe("a folder", () => {
  let root: string;
  let store: FolderStore;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), "oracle-worker-store-"));
    store = new FolderStore(root);
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it("keeps files to itself, and none half written", async () => {
    const { reference } = await store.put("tenant", Buffer.from("private"));
    expect(statSync(join(root, reference)).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(root, "incoming"))).toEqual([]);
  });

  it("does not follow a link in place of a file", async () => {
    const { reference } = await store.put("tenant", Buffer.from("linked"));
    const elsewhere = join(root, "elsewhere");
    writeFileSync(elsewhere, "linked");
    rmSync(join(root, reference));
    symlinkSync(elsewhere, join(root, reference));
    await expect(store.get(reference)).rejects.toMatchObject({ code: "ARTIFACT_STORE" });
    expect(await store.has(reference)).toBe(false);
  });

  it("collects what a crash left half written", async () => {
    const left = join(root, "incoming", "01a1e0ed-0000-7000-8000-000000000000");
    writeFileSync(left, "half");
    longAgo(left, 3700);
    await collectOrphans(store, async () => new Set());
    expect(existsSync(left)).toBe(false);
  });

  it("that is gone fails with a code, and works again when it is back", async () => {
    const gone = join(root, "gone");
    writeFileSync(gone, "a file where the folder should be");
    const there = new FolderStore(gone);
    const put = () => there.put("tenant", Buffer.from("x"));
    await expect(put()).rejects.toMatchObject({ code: "ARTIFACT_STORE" });
    rmSync(gone);
    mkdirSync(gone);
    expect(await there.has((await put()).reference)).toBe(true);
  });

  it("that takes no more bytes fails with a code and leaves nothing", async () => {
    // The kernel refuses the write past 64 KiB, as it does on a full disk.
    const script = `
      import { FolderStore } from ${JSON.stringify(fileURLToPath(new URL("../dist/artifacts/folder.js", import.meta.url)))};
      const store = new FolderStore(process.argv[1]);
      const failed = await store.put("tenant", Buffer.alloc(1_000_000)).catch((error) => error);
      const small = await store.put("tenant", Buffer.alloc(1000));
      const left = [];
      for await (const { reference } of store.list()) left.push(reference);
      console.log(JSON.stringify({ code: failed.code, message: failed.message, left, small: small.reference }));`;
    const folder = join(root, "full");
    const { stdout, stderr } = spawnSync(
      "bash",
      ["-c", 'ulimit -f 64; exec "$0" --input-type=module -e "$1" "$2"', process.execPath, script, folder],
      { stdio: ["ignore", "pipe", "pipe"], encoding: "utf8" },
    );
    expect(stderr).toBe("");
    const { code, message, left, small } = JSON.parse(stdout);
    expect({ code, left }).toEqual({ code: "ARTIFACT_STORE", left: [small] });
    expect(message).toMatch(/EFBIG/);
  });
});

describe("a bucket", () => {
  let server: S3Server;
  beforeAll(async () => {
    server = await startS3();
  });
  afterAll(() => server.stop());
  afterEach(() => {
    vi.unstubAllEnvs();
  });
  const open = (env: Record<string, string> = {}, bucket = server.bucket) => {
    for (const [name, value] of Object.entries({ ...server.env, ...env })) vi.stubEnv(name, value);
    return openArtifactStore(`s3://${bucket}`);
  };
  const put = async (store: ArtifactStore) => store.put("tenant", Buffer.from("x"));

  it("that does not exist, or does not know the login, fails with a code", async () => {
    await expect(put(await open({}, "no-such-bucket"))).rejects.toMatchObject({ code: "ARTIFACT_STORE" });
    const stranger = await open({ AWS_ACCESS_KEY_ID: "NOBODY" });
    await expect(put(stranger)).rejects.toMatchObject({ code: "ARTIFACT_STORE", message: /access key/i });
  });

  it("without a prefix is found under AWS_ENDPOINT_URL too", async () => {
    const address = server.env.AWS_ENDPOINT_URL_S3 as string;
    const store = await open({ AWS_ENDPOINT_URL_S3: "", AWS_ENDPOINT_URL: address });
    const { reference } = await put(store);
    expect(existsSync(server.fileOf(reference))).toBe(true);
    expect(await readAll(store, reference)).toBe("x");
  });

  it("sends a file's stream", async () => {
    const store = await open();
    const file = fileURLToPath(import.meta.url);
    const { reference, size } = await store.put("tenant", createReadStream(file));
    expect(size).toBe(statSync(file).size);
    expect(await readAll(store, reference)).toContain("sends a file's stream");
  });

  it("needs a package, and says so where it is missing", () => {
    const elsewhere = mkdtempSync(join(tmpdir(), "oracle-worker-bare-"));
    const root = fileURLToPath(new URL("..", import.meta.url));
    for (const part of ["package.json", "dist/core", "dist/artifacts"]) {
      cpSync(join(root, part), join(elsewhere, part), { recursive: true });
    }
    const script = `
      import { openArtifactStore } from "./dist/artifacts/open.js";
      await openArtifactStore("s3://bucket").catch((error) => console.log(JSON.stringify(error)));`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: elsewhere,
      encoding: "utf8",
    });
    rmSync(elsewhere, { recursive: true });
    expect(JSON.parse(stdout)).toMatchObject({
      code: "INVALID_SETTING",
      field: "ARTIFACTS",
      message: expect.stringContaining("npm install @aws-sdk/client-s3"),
    });
  });

  it("whose server has gone fails with a code", async () => {
    const other = await startS3();
    for (const [name, value] of Object.entries(other.env)) vi.stubEnv(name, value);
    const store = await openArtifactStore(`s3://${other.bucket}`);
    const { reference } = await put(store);
    await other.stop();
    await expect(put(store)).rejects.toMatchObject({ code: "ARTIFACT_STORE" });
    await expect(store.get(reference)).rejects.toMatchObject({ code: "ARTIFACT_STORE" });
    await expect(listed(store)).rejects.toMatchObject({ code: "ARTIFACT_STORE" });
  });
});
