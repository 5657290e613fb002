import { type Fault, faultAt, faultOfWhole, quote, tooDeep, within } from "./json-fault.js";
import { numberFault } from "./json-number.js";
import { isWellFormed } from "./unicode.js";

/**
 * Reads a JSON text token by token and returns the first thing wrong with it: bad syntax, a number that would
 * change, text that Postgres cannot hold, a key given twice, too much depth. Slow beside JSON.parse: for texts
 * under suspicion.
 */
export function scanJson(text: string, maxDepth: number): Fault | undefined {
  const scanner = new Scanner(text, maxDepth);
  return scanner.value() ?? scanner.end();
}

const numberToken = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const literalToken = /true|false|null/y;
const escapeToken = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

class Scanner {
  #at = 0;
  readonly #text: string;
  readonly #maxDepth: number;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  value(depth = 0): Fault | undefined {
    switch (this.#peek()) {
      case "{":
        return depth < this.#maxDepth ? this.#object(depth + 1) : tooDeep(this.#maxDepth);
      case "[":
        return depth < this.#maxDepth ? this.#array(depth + 1) : tooDeep(this.#maxDepth);
      case '"': {
        const read = this.#string();
        return typeof read === "string" ? textFault(read) : read;
      }
    }
    const token = this.#take(numberToken);
    if (token === undefined) return this.#take(literalToken) ? undefined : this.#unexpected("a value");
    const why = numberFault(token);
    return why === undefined ? undefined : faultAt("PAYLOAD_REJECTED", why);
  }

  end(): Fault | undefined {
    return this.#peek() === "" ? undefined : this.#unexpected("the end of the text");
  }

  #array(depth: number): Fault | undefined {
    this.#at++;
    if (this.#accept("]")) return undefined;
    for (let index = 0; ; index++) {
      const fault = this.value(depth);
      if (fault) return within(fault, index);
      if (this.#accept("]")) return undefined;
      if (!this.#accept(",")) return this.#unexpected('"," or "]"');
    }
  }

  #object(depth: number): Fault | undefined {
    this.#at++;
    const keys = new Set<string>();
    if (this.#accept("}")) return undefined;
    for (;;) {
      if (this.#peek() !== '"') return this.#unexpected("a key in double quotes");
      const key = this.#string();
      if (typeof key !== "string") return key;
      if (!this.#accept(":")) return this.#unexpected('":"');
      const fault = textFault(key) ?? repeated(key, keys) ?? this.value(depth);
      if (fault) return within(fault, key);
      if (this.#accept("}")) return undefined;
      if (!this.#accept(",")) return this.#unexpected('"," or "}"');
    }
  }

  /** The string at the cursor, decoded, or what is wrong with its syntax. */
  #string(): string | Fault {
    const start = this.#at++;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === 0x22) break;
      if (code === 0x5c) {
        if (!this.#take(escapeToken)) return this.#unexpected("an escape such as \\n or \\u000a");
      } else if (code >= 0x20) this.#at++;
      else return this.#unexpected(Number.isNaN(code) ? "a closing quote" : "an escape such as \\n");
    }
    return JSON.parse(this.#text.slice(start, ++this.#at)) as string;
  }

  /** The next character after white space, "" at the end. */
  #peek(): string {
    for (;;) {
      const next = this.#text.charAt(this.#at);
      if (next !== " " && next !== "\n" && next !== "\r" && next !== "\t") return next;
      this.#at++;
    }
  }

  #accept(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }

  #take(token: RegExp): string | undefined {
    token.lastIndex = this.#at;
    const found = token.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #unexpected(wanted: string): Fault {
    const before = this.#text.slice(0, this.#at);
    const line = before.split("\n").length;
    const column = this.#at - before.lastIndexOf("\n");
    const says = `line ${line}, column ${column} needs ${wanted}, but ${met(this.#text.codePointAt(this.#at))}`;
    return faultOfWhole("INVALID_JSON", `is not JSON: ${says}`);
  }
}

function met(code: number | undefined): string {
  if (code === undefined) return "the text ends";
  if (code > 0x20 && code < 0x7f) return `there is ${quote(String.fromCodePoint(code))}`;
  return `there is U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

function textFault(text: string): Fault | undefined {
  let why: string;
  if (text.includes("\0")) why = "holds a NUL character, which Postgres cannot store";
  else if (!isWellFormed(text)) why = "holds half of a surrogate pair, which is no Unicode text";
  else return undefined;
  return faultAt("PAYLOAD_REJECTED", `the text ${quote(text)} ${why}; remove it`);
}

/** Readers disagree on which of two equal keys counts, so neither does. Remembers the key. */
function repeated(key: string, keys: Set<string>): Fault | undefined {
  if (keys.has(key)) return faultAt("PAYLOAD_REJECTED", `the key ${quote(key)} is there twice; send it once`);
  keys.add(key);
  return undefined;
}
