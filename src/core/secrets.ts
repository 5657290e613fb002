/** A word of a name that says its value is secret, wherever in the name it stands. */
const secretWord = /^(passphrase|pwd|apikey|authorization|cookies?|credentials?|dsn|jwt)$|passw(or)?d|secret/;
/** The end of a name, in words. Counts of `tokens` are no secret, so it is the singular and the end that count. */
const secretEnd = /(^|_)(token|(api|access|private|signing|encryption|account)_key|connection_string)$/;

/** Whether a field, setting or variable of this name holds a secret: `apiKey`, `PGPASSWORD`, `refresh-token`. */
export function isSecretName(name: string): boolean {
  // Longer than any name somebody would give: not worth taking apart.
  if (name.length > 100) return false;
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return words.some((word) => secretWord.test(word)) || secretEnd.test(words.join("_"));
}

/** Shorter texts, and plain words such as `postgres`, are everywhere: to hide them would garble every line. */
function isTelling(value: string): boolean {
  return value.length >= 8 && value.length <= 4096 && (value.length >= 20 || !/^[a-z]+$/.test(value));
}

/** How many of a payload's secrets are looked for in what is said about it. */
const MOST = 50;

/** The values that a payload keeps under secret names. */
export function secretsIn(payload: unknown): string[] {
  const found: string[] = [];
  const walk = (value: unknown, secret: boolean) => {
    if (found.length >= MOST) return;
    if (typeof value === "string" && secret && isTelling(value)) found.push(value);
    if (typeof value !== "object" || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      walk(member, secret || (!Array.isArray(value) && isSecretName(name)));
    }
  };
  walk(payload, false);
  return found;
}

const known = new Set<string>();

/** Secrets this process was given: hidden wherever they turn up, whatever they look like. */
export function knownSecrets(): ReadonlySet<string> {
  return known;
}

/** Learns the password of a database address, as it stands there and as it is meant. */
export function rememberAddress(address: string): void {
  const written = /^[a-z]+:\/\/[^/?#@:]*:([^/?#]+)@/.exec(address)?.[1];
  if (written === undefined) return;
  for (const secret of new Set([written, decoded(written)])) if (isTelling(secret)) known.add(secret);
}

/** Learns what an environment holds under secret names, and the passwords of its addresses. */
export function rememberEnvironment(env: Record<string, string | undefined>): void {
  for (const [name, value] of Object.entries(env)) {
    // The shell's working folder, whatever its name looks like.
    if (value === undefined || name === "PWD" || name === "OLDPWD") continue;
    if (isSecretName(name) && isTelling(value)) known.add(value);
    rememberAddress(value);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
