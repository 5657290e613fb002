import { isSecretName, knownSecrets } from "./secrets.js";

export const MARK = "[redacted]";

// Texts come from anybody, so the time these take must grow with the text and no faster. Each begins with
// something rare, every repetition is bounded or ends the pattern, and nothing after a long repetition can fail.

/** A private key, up to its end or the text's. */
const privateKey =
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g;
/** The password of an address. */
const addressPassword = /(:\/\/[^\s/?#@:"'<>]{0,200}:)[^\s/?#"'<>]{1,300}@/g;
/** What providers put in front of their keys so that they are known on sight. */
const providerKey =
  /(?<![A-Za-z0-9])(?:owt_|sk-|[rs]k_(?:live|test)_|gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|hf_|npm_|pypi-|AIza|ya29\.|SG\.)[\w.-]{12,}/g;
const awsKey = /(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])/g;
const jwt = /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g;
/** The credentials of a header; a plain word in their place is a sentence about them. */
const scheme = /\b([Bb]earer|BEARER|[Bb]asic|BASIC)(\s{1,4})(?![a-z]{1,60}(?![\w.~+/=-]))[\w.~+/=-]{6,}/g;
/** A header that is secret to the end of its line. */
const header =
  /(authorization|cookie)(\\{0,2}["']?\s{0,3}[:=](?!\s{0,3}\\{0,2}["']?\[redacted\])\s{0,3}\\{0,2}["']?)[^\r\n"'\\]+/gi;
/**
 * `password=…`, `"api_key": "…"`, also inside JSON inside JSON. Two words after a colon are a sentence about the
 * thing, and a number after `token` is a count.
 */
const named =
  /(passw(?:or)?d|passphrase|pwd|secret|credentials?|dsn|token|(?:api|access|private|secret|signing|encryption|account)[ _-]?key)(\\{0,3}["']?\s{0,3}(?:=>?|:(?!\s{1,3}[A-Za-z]{1,20} [a-z]))\s{0,3})((\\{1,3}"(?:[^"\\]|\\\\\\"|\\[^"])+)|("(?:[^"\\]|\\.)+)|('[^'\r\n]+)|(?!(?:null|undefined|true|false|none)\b)[^\s"'\\,;&(){}[\]<>]+)/gi;

/** More than anybody reads, and a fraction of what would exhaust a regular expression. */
const LONGEST = 2_000_000;

/**
 * Hides what looks like a secret in a text, what this process knows to be one, and what `also` names. A text that
 * is far too long is cut.
 */
export function redactText(text: string, also: readonly string[] = []): string {
  let clean = text.length > LONGEST ? `${text.slice(0, LONGEST)}… [cut]` : text;
  for (const secret of [...knownSecrets(), ...also]) {
    if (clean.includes(secret)) clean = clean.replaceAll(secret, MARK);
  }
  clean = clean
    .replaceAll(privateKey, MARK)
    .replaceAll(addressPassword, `$1${MARK}@`)
    .replaceAll(providerKey, MARK)
    .replaceAll(awsKey, MARK)
    .replaceAll(jwt, MARK)
    .replaceAll(scheme, `$1$2${MARK}`)
    .replaceAll(header, `$1$2${MARK}`);
  return clean.replaceAll(named, (whole, name: string, between: string, value: string) => {
    if (/^token$/i.test(name) && /^\d+$/.test(value)) return whole;
    const quote = /^\\*["']/.exec(value)?.[0] ?? "";
    return `${name}${between}${quote}${MARK}`;
  });
}

/** Deeper than anything worth logging; also what ends a circle. */
const DEEPEST = 16;

/** A copy for logs: secret fields hidden whole, texts as above, errors as plain objects. */
export function redactFields(value: unknown, also: readonly string[] = [], depth = 0): unknown {
  if (typeof value === "string") return redactText(value, also);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEEPEST) return "[too deep]";
  if (Array.isArray(value)) return value.map((item) => redactFields(item, also, depth + 1));
  if (value instanceof Error) return redactFields(errorFields(value), also, depth);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      isSecretName(name) && member !== null && member !== undefined
        ? MARK
        : redactFields(member, also, depth + 1),
    ]),
  );
}

export function errorFields(error: Error): Record<string, unknown> {
  return { type: error.name, ...error, message: error.message, stack: error.stack };
}
