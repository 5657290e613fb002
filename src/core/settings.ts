import { artifactPlace } from "./artifact-place.js";
import { OracleError } from "./errors.js";
import { isSecretName } from "./secrets.js";

type Parsed = string | number | boolean | string[];

interface Setting<T extends Parsed> {
  readonly about: string;
  readonly fallback: T | undefined;
  /** What a value may be, in words for the error. */
  readonly right: string;
  /** The same for machines, as JSON Schema: the chart's values are checked with it. */
  readonly schema?: object;
  parse(text: string): T | undefined;
}

const text = (about: string, fallback?: string): Setting<string> => ({
  about,
  fallback,
  right: "a text that is not empty",
  schema: { type: "string" },
  parse: (value) => (value.trim() === "" ? undefined : value),
});

/** Read loosely, any word would become the name of a database on a host called `base`. */
const databaseAddress = (about: string): Setting<string> => ({
  about,
  fallback: undefined,
  right: "an address such as postgresql://user:password@host:5432/database",
  schema: { type: "string", pattern: "^(postgres(ql)?://.+|/.+|)$" },
  // A socket's directory stands in for the host, as a path or as `?host=` behind an empty one.
  parse: (value) => {
    const isUrl = /^postgres(ql)?:\/\//.test(value) && URL.canParse(value.replace("@/", "@socket/"));
    return isUrl || value.startsWith("/") ? value : undefined;
  },
});

const redisAddress = (about: string): Setting<string> => ({
  about,
  fallback: undefined,
  right: "an address such as redis://user:password@host:6379/0",
  schema: { type: "string", pattern: "^(rediss?://.+|)$" },
  parse: (value) => (/^rediss?:\/\//.test(value) && URL.canParse(value) ? value : undefined),
});

const wholeNumber = (
  about: string,
  fallback: number | undefined,
  least: number,
  most: number,
): Setting<number> => ({
  about,
  fallback,
  right: `a whole number from ${least} to ${most}`,
  schema: { type: ["integer", "string"], minimum: least, maximum: most, pattern: "^[0-9]+$" },
  parse: (value) => {
    const number = /^\d+$/.test(value.trim()) ? Number(value) : Number.NaN;
    return number >= least && number <= most ? number : undefined;
  },
});

/** A duration in seconds: `30`, `30s`, `500ms`, `5m`, `2h`. */
const duration = (
  about: string,
  fallback: number | undefined,
  least: number,
  most: number,
): Setting<number> => ({
  about,
  fallback,
  right: `a duration from ${least}s to ${most}s, such as 30s, 500ms or 5m`,
  schema: {
    type: ["number", "string"],
    minimum: least,
    maximum: most,
    pattern: "^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)?$",
  },
  parse: (value) => {
    const seconds = parseDuration(value);
    return seconds !== undefined && seconds >= least && seconds <= most ? seconds : undefined;
  },
});

const flag = (about: string): Setting<boolean> => ({
  about,
  fallback: false,
  right: "1, 0, true or false",
  schema: { enum: ["1", "0", "true", "false", 1, 0, true, false] },
  parse: (value) => ({ "1": true, true: true, "0": false, false: false })[value.trim().toLowerCase()],
});

const names = (about: string, fallback: string[]): Setting<string[]> => ({
  about,
  fallback,
  right: "names separated by commas",
  schema: { type: ["string", "array"], items: { type: "string" }, minLength: 1, minItems: 1 },
  parse: (value) => {
    const parts = value.split(",").map((part) => part.trim());
    return parts.every((part) => part.length >= 1 && part.length <= 200) ? parts : undefined;
  },
});

const oneOf = (about: string, fallback: string, words: string[]): Setting<string> => ({
  about,
  fallback,
  right: `one of ${words.join(", ")}`,
  schema: { enum: words },
  parse: (value) => words.find((word) => word === value.trim().toLowerCase()),
});

/** A folder, or a bucket with a prefix. `artifactPlace` reads it. */
const artifactAddress = (about: string, fallback: string): Setting<string> => ({
  about,
  fallback,
  right: "file:FOLDER or s3://BUCKET/PREFIX",
  schema: { type: "string", pattern: "^(file:|s3://).+" },
  parse: (value) => (artifactPlace(value) ? value : undefined),
});

/** Every setting, once: the source for reading, help and documentation. Durations are in seconds. */
export const settingsTable = {
  DATABASE_URL: databaseAddress("PostgreSQL 13 to 18; without it the embedded one is used"),
  DIRECT_DATABASE_URL: databaseAddress("past a pooler, for LISTEN and migrations"),
  REDIS_URL: redisAddress("carries wake-ups to workers, beside the database's own"),
  ORACLE_SCHEMA: text("the schema of this installation; its roles are named after it", "oracle"),
  STRICT_ROLES: flag("refuse logins that could step out of the restricted role"),
  WORKER_ID: text("a name for this worker; each process adds a suffix of its own"),
  QUEUES: names("queues to serve", ["default"]),
  CONCURRENCY: wholeNumber("jobs at once in one process", 10, 1, 100_000),
  LEASE_SECONDS: duration("how long a lease lasts without renewal", 60, 0.2, 86_400),
  POLL_INTERVAL: duration("how often to look without being told", 1, 0.01, 3600),
  SHUTDOWN_GRACE: duration("how long a stop waits for running jobs", 30, 0, 86_400),
  HEALTH_PORT: wholeNumber("where a worker answers /healthz, /readyz and /metrics; 0: nowhere", 0, 0, 65_535),
  MAX_PAYLOAD_BYTES: wholeNumber("largest input or result, as JSON text", 1_048_576, 1024, 268_435_456),
  MAX_PAYLOAD_DEPTH: wholeNumber("deepest nesting of an input or result", 64, 1, 500),
  ARTIFACTS: artifactAddress("where artifacts' bytes are kept", "file:.oracle-worker/artifacts"),
  RETENTION: duration("how long finished jobs are kept; without it for ever", undefined, 1, 3_155_760_000),
  KEY_PROTECTION: duration(
    "how long a finished job with a key is kept at least",
    2_592_000,
    0,
    3_155_760_000,
  ),
  LOG_LEVEL: oneOf("what is logged", "info", ["silent", "error", "warn", "info", "debug"]),
} as const;

export type SettingName = keyof typeof settingsTable;
type ValueOf<S> = S extends Setting<infer T> ? T : never;
/** Those without a default may be missing. */
type MayBeMissing = "DATABASE_URL" | "DIRECT_DATABASE_URL" | "REDIS_URL" | "WORKER_ID" | "RETENTION";
export type Settings = Readonly<{
  [Name in SettingName]:
    | ValueOf<(typeof settingsTable)[Name]>
    | (Name extends MayBeMissing ? undefined : never);
}>;

/** Layers from weakest to strongest: file, environment, flags. The result is complete, checked and frozen. */
export function readSettings(...layers: Partial<Record<SettingName, string | undefined>>[]): Settings {
  const values: Record<string, Parsed | undefined> = {};
  for (const name of Object.keys(settingsTable) as SettingName[]) {
    const setting: Setting<Parsed> = settingsTable[name] as Setting<Parsed>;
    const given = layers.map((layer) => layer[name]).findLast((value) => value !== undefined);
    values[name] = given === undefined ? setting.fallback : parseSetting(name, given);
  }
  return Object.freeze(values) as Settings;
}

function parseSetting(name: SettingName, given: string): Parsed {
  const setting = settingsTable[name] as Setting<Parsed>;
  const value = setting.parse(given);
  if (value !== undefined) return value;
  // An address may carry a password, and errors are logged.
  const hidden = name.endsWith("_URL") || isSecretName(name);
  const shown = hidden ? "not usable" : JSON.stringify(given);
  throw new OracleError("INVALID_SETTING", `${name} is ${shown}; it must be ${setting.right}.`, {
    field: name,
  });
}

/** Seconds of `30`, `1.5s`, `500ms`, `5m`, `2h`, `7d`; undefined for anything else. */
export function parseDuration(given: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(given.trim());
  if (!match) return undefined;
  const unit = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 }[match[2] ?? "s"] ?? 1;
  return Number(match[1]) * unit;
}
