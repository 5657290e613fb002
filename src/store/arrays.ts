// Lists as parameters. The driver's own way quotes every element and looks at each of its letters twice.

/** How a list is written. */
export interface ArrayForm {
  texts(texts: readonly (string | null | undefined)[]): Buffer | string;
  /** Of ids as Postgres prints them. */
  ids(ids: readonly string[]): Buffer | string;
}

/** Of numbers and booleans, whatever the form of the others: these are short. */
export function plainArray(values: readonly (number | boolean)[]): string {
  return `{${values.join(",")}}`;
}

/** As text, which every driver passes on. Postgres reads it letter by letter. */
export const written: ArrayForm = {
  texts(texts) {
    let previous: string | null | undefined = null;
    let element = "NULL";
    const elements = texts.map((text) => {
      // Most columns hold the same text many times in a row.
      if (text !== previous) element = typeof text === "string" ? quoted(text) : "NULL";
      previous = text;
      return element;
    });
    return `{${elements.join(",")}}`;
  },
  ids: (ids) => `{${ids.join(",")}}`,
};

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/**
 * As Postgres keeps them, which pg passes on as they are. Sent and read, a text of 4 KB takes 8 µs instead of 27, an
 * id 0.2 instead of 0.5.
 */
export const binary: ArrayForm = {
  texts(texts) {
    let bytes = 0;
    for (const text of texts) bytes += 4 + (typeof text === "string" ? Buffer.byteLength(text) : 0);
    const array = startArray(TEXT, texts.length, bytes);
    let at = HEADER_BYTES;
    for (const text of texts) {
      const length = typeof text === "string" ? array.write(text, at + 4) : ABSENT;
      array.writeInt32BE(length, at);
      at += 4 + Math.max(0, length);
    }
    return array;
  },
  ids(ids) {
    const array = startArray(UUID, ids.length, ids.length * 20);
    let at = HEADER_BYTES;
    for (const id of ids) {
      array.writeInt32BE(16, at);
      at += 4;
      for (let digit = 0; digit < 36; digit += 2) {
        if (digit === 8 || digit === 13 || digit === 18 || digit === 23) digit++;
        array[at++] = nibble(id, digit) * 16 + nibble(id, digit + 1);
      }
    }
    return array;
  },
};

// Types by their numbers in Postgres's catalogue, which never change.
const TEXT = 25;
const UUID = 2950;
const HEADER_BYTES = 20;
const ABSENT = -1;

function startArray(elementType: number, elements: number, bytes: number): Buffer {
  const array = Buffer.allocUnsafe(HEADER_BYTES + bytes);
  array.writeInt32BE(1, 0); // dimensions
  array.writeInt32BE(1, 4); // some elements may be absent
  array.writeInt32BE(elementType, 8);
  array.writeInt32BE(elements, 12);
  array.writeInt32BE(1, 16); // the first one's number
  return array;
}

/** The value of each hexadecimal digit, by its character code. */
const nibbles = Uint8Array.from(
  { length: 128 },
  (_, code) => Number.parseInt(String.fromCharCode(code), 16) || 0,
);

function nibble(id: string, digit: number): number {
  return nibbles[id.charCodeAt(digit)] as number;
}
