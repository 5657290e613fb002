// String.prototype.isWellFormed and toWellFormed are in every Node we run on, but not in the typings of our
// compile target (they are ES2024).
interface Es2024String {
  isWellFormed(): boolean;
  toWellFormed(): string;
}

/** False when the text holds half of a surrogate pair, which UTF-8 cannot express. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as Es2024String).isWellFormed();
}

/** The text with U+FFFD in place of every half of a surrogate pair. */
export function toWellFormed(text: string): string {
  return (text as unknown as Es2024String).toWellFormed();
}

/** The longest beginning of the text that takes no more bytes of UTF-8, cut between characters. */
export function cutBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}
