import { createHash, randomBytes } from "node:crypto";

/** What a token's holder may do, from least to most: each role may also what the ones before it may. */
export const tokenRoles = ["viewer", "operator", "admin"] as const;
export type TokenRole = (typeof tokenRoles)[number];

/** The prefix lets secret scanners, and our own redaction, know one when they see it. */
const PREFIX = "owt_";
const shape = /^owt_[A-Za-z0-9_-]{43}$/;

/** 256 random bits. */
export function newToken(): string {
  return PREFIX + randomBytes(32).toString("base64url");
}

export function isToken(text: string): boolean {
  return shape.test(text);
}

/** All that is kept of a token, and all that is sent to the database. */
export function tokenHash(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
