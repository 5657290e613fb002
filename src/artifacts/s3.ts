import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type * as Sdk from "@aws-sdk/client-s3";
import { OracleError } from "../core/errors.js";
import { sha256Hex } from "../core/hash.js";
import {
  type ArtifactStore,
  type Bytes,
  digestOf,
  isReference,
  newReference,
  type StoredBytes,
  storeError,
  verified,
} from "./store.js";
import { writeHashed } from "./write.js";

/** A silent host must not hold a handler until its timeout. */
const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 30_000;

/** Opens a bucket of Amazon's or of anything that speaks like it; region and login come from the SDK's environment. */
export async function openS3Store(bucket: string, prefix: string): Promise<ArtifactStore> {
  const sdk = await import("@aws-sdk/client-s3").catch((error: unknown) => {
    const message = `ARTIFACTS is s3://${bucket}, which needs a package that is not installed: npm install @aws-sdk/client-s3.`;
    throw new OracleError("INVALID_SETTING", message, { field: "ARTIFACTS", cause: error });
  });
  const endpoint = process.env.AWS_ENDPOINT_URL_S3 || process.env.AWS_ENDPOINT_URL;
  const client = new sdk.S3Client({
    // Others than Amazon seldom have a host name per bucket, and not all know the newer checksums.
    ...(endpoint ? { endpoint, forcePathStyle: true } : {}),
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: IDLE_TIMEOUT_MS },
  });
  return new S3Store(sdk, client, bucket, prefix === "" ? "" : `${prefix}/`);
}

class S3Store implements ArtifactStore {
  constructor(
    private readonly sdk: typeof Sdk,
    private readonly client: Sdk.S3Client,
    private readonly bucket: string,
    private readonly prefix: string,
  ) {}

  async put(tenantId: string, content: Bytes): Promise<StoredBytes> {
    try {
      if (!(content instanceof Uint8Array)) return await this.putStream(tenantId, content);
      return await this.upload(tenantId, content, sha256Hex(content), content.byteLength);
    } catch (error) {
      throw storeError("write", error);
    }
  }

  async get(reference: string): Promise<Readable> {
    digestOf(reference);
    try {
      const { Body } = await this.client.send(new this.sdk.GetObjectCommand(this.key(reference)));
      return verified(Body as Readable, reference);
    } catch (error) {
      throw storeError(`read ${reference}`, error);
    }
  }

  async has(reference: string): Promise<boolean> {
    digestOf(reference);
    try {
      await this.client.send(new this.sdk.HeadObjectCommand(this.key(reference)));
      return true;
    } catch (error) {
      if (error instanceof this.sdk.NotFound) return false;
      throw storeError("look", error);
    }
  }

  async remove(reference: string): Promise<void> {
    digestOf(reference);
    await this.client.send(new this.sdk.DeleteObjectCommand(this.key(reference))).catch((error: unknown) => {
      throw storeError("remove", error);
    });
  }

  async *list(): AsyncGenerator<{ reference: string; ageSeconds: number }> {
    try {
      for (let from: string | undefined, more = true; more; more = from !== undefined) {
        const command = new this.sdk.ListObjectsV2Command({
          Bucket: this.bucket,
          Prefix: this.prefix,
          ContinuationToken: from,
        });
        let now = Date.now();
        // The server's own clock, which also stamped the objects.
        command.middlewareStack.add(
          (next) => async (args) => {
            const result = await next(args);
            now =
              Date.parse((result.response as { headers: Record<string, string> }).headers.date ?? "") || now;
            return result;
          },
          { step: "deserialize" },
        );
        const page = await this.client.send(command);
        for (const { Key = "", LastModified } of page.Contents ?? []) {
          const reference = Key.slice(this.prefix.length);
          if (!isReference(reference)) continue;
          yield { reference, ageSeconds: (now - (LastModified?.getTime() ?? now)) / 1000 };
        }
        from = page.NextContinuationToken;
      }
    } catch (error) {
      throw storeError("list", error);
    }
  }

  /** An object is sent with its length and under its digest, so a stream must have come to its end first. */
  private async putStream(tenantId: string, content: AsyncIterable<Uint8Array>): Promise<StoredBytes> {
    const folder = await mkdtemp(join(tmpdir(), "oracle-worker-"));
    try {
      const path = join(folder, "upload");
      const { sha256, size } = await writeHashed(path, content);
      return await this.upload(tenantId, createReadStream(path), sha256, size);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  private async upload(
    tenantId: string,
    body: Uint8Array | Readable,
    sha256: string,
    size: number,
  ): Promise<StoredBytes> {
    const reference = newReference(tenantId, sha256);
    await this.client.send(
      new this.sdk.PutObjectCommand({
        ...this.key(reference),
        Body: body,
        ContentLength: size,
        ChecksumSHA256: Buffer.from(sha256, "hex").toString("base64"),
      }),
    );
    return { sha256, size, reference };
  }

  private key(reference: string): { Bucket: string; Key: string } {
    return { Bucket: this.bucket, Key: this.prefix + reference };
  }
}
