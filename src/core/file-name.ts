import { cutBytes, toWellFormed } from "./unicode.js";

/** What a file's name may take of the 255 bytes that file systems allow; the rest is for a suffix of ours. */
const MOST_BYTES = 200;

/** Separators, what Windows refuses, and whatever cannot be seen or turns the direction of text. */
const unfit = /[/\\:*?"<>|\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
/** Names that Windows takes for devices, with any ending. */
const device = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/**
 * A name under which what somebody called `name` may be saved on this machine: one component, visible characters,
 * neither hidden nor `..` nor a device. Different names may become the same.
 */
export function safeFileName(name: string): string {
  const visible = toWellFormed(name).normalize("NFC").replaceAll(unfit, "_");
  // A leading dot hides or climbs, a leading dash is taken for a flag, and Windows drops trailing dots and blanks.
  const bare = visible.replace(/^[\s.-]+/u, "").replace(/[\s.]+$/u, "");
  const short = cutBytes(bare, MOST_BYTES).replace(/[\s.]+$/u, "");
  if (short === "") return "artifact";
  return device.test(short) ? `_${short}` : short;
}
