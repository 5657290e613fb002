import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { quote } from "../core/json-fault.js";
import { EvolutionWorkerError } from "./error.js";
import { type ChangeField, lookAt, MOST_CHANGE_BYTES, refused } from "./paths.js";

/** One search/replace block. */
export interface Edit {
  path: string;
  /** Empty: the file is new. */
  search: string;
  replace: string;
}

/** Never through a symlink, whatever was seen before. */
const OVERWRITE = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW;

const begins = "<<<<<<< SEARCH";
const divides = "=======";
const ends = ">>>>>>> REPLACE";

/**
 * Reads blocks out of a text: a line with the path, then the block. What else the text says is passed over, fences
 * included; a block without a path line of its own belongs to the file of the block before.
 */
export function parseEdits(text: string): Edit[] {
  checkText(text, "edits");
  const lines = text.split(/\r?\n/);
  const edits: Edit[] = [];
  let path = "";
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] as string;
    if (line.trimEnd() !== begins) {
      if (line.trim() !== "" && !line.trim().startsWith("```")) path = unquote(line);
      continue;
    }
    const middle = findLine(lines, divides, at + 1);
    const end = middle === -1 ? -1 : findLine(lines, ends, middle + 1);
    if (path === "") throw unreadable(at, "has no line with the file's path before it");
    if (/`|^\*|\*$/.test(path))
      throw unreadable(at, `needs a line with nothing but the path before it, not ${quote(path)}`);
    if (end === -1) throw unreadable(at, `is not closed: it needs ${divides} and ${ends}`);
    edits.push({
      path,
      search: body(lines.slice(at + 1, middle)),
      replace: body(lines.slice(middle + 1, end)),
    });
    at = end;
  }
  if (edits.length === 0) throw unreadable(0, `is not there: a block begins with ${begins}`);
  return edits;
}

/** Applies all of the edits, or none. */
export async function applyEdits(worktree: string, edits: Edit[]): Promise<void> {
  const contents = new Map<string, { text: string; isNew: boolean }>();
  for (const edit of edits) {
    const before = contents.get(edit.path) ?? (await readText(worktree, edit.path));
    contents.set(edit.path, { text: replaceIn(edit, before?.text), isNew: before?.isNew ?? true });
  }
  checkFolders([...contents.keys()]);
  for (const [path, { text, isNew }] of contents) {
    await mkdir(dirname(join(worktree, path)), { recursive: true });
    await writeFile(join(worktree, path), text, { flag: isNew ? "wx" : OVERWRITE });
  }
}

/** Text is what can be kept and shown: no NUL, and no more than there may be. */
export function checkText(text: string, field: ChangeField): void {
  const size = Buffer.byteLength(text);
  const wrong = (what: string) =>
    new EvolutionWorkerError("EVOLUTION_EDITS", `The coder's ${field} ${what}.`, { field });
  if (size > MOST_CHANGE_BYTES)
    throw wrong(`cannot have ${size} bytes; at most ${MOST_CHANGE_BYTES} are taken`);
  if (text.includes("\0")) throw wrong("cannot hold binary data (a NUL); only text can be changed this way");
}

async function readText(
  worktree: string,
  path: string,
): Promise<{ text: string; isNew: boolean } | undefined> {
  if ((await lookAt(worktree, path)) === "nothing") return undefined;
  const bytes = await readFile(join(worktree, path));
  if (!isUtf8(bytes) || bytes.includes(0)) throw refused(path, "it is not a text file");
  return { text: bytes.toString("utf8"), isNew: false };
}

/** Blocks have the line ends of their answer; what is written has those of the file. */
function replaceIn(edit: Edit, text: string | undefined): string {
  if (text === undefined || !text.includes("\r\n") || /(?<!\r)\n/.test(text)) return replaceOnce(edit, text);
  return replaceOnce(edit, text.replaceAll("\r\n", "\n")).replaceAll("\n", "\r\n");
}

function replaceOnce({ path, search, replace }: Edit, text: string | undefined): string {
  if (search === "") {
    if (text !== undefined && text !== "")
      throw refused(path, "an empty SEARCH makes a file, and it is there");
    return replace;
  }
  if (text === undefined) throw refused(path, "there is no such file; an empty SEARCH would make it");
  // A file's last line may have no end.
  if (!text.includes(search) && !text.endsWith("\n") && `${text}\n`.includes(search)) {
    return replaceOnce({ path, search, replace }, `${text}\n`).slice(0, -1);
  }
  const first = text.indexOf(search);
  if (first === -1) {
    const mixed = text.replaceAll("\r\n", "\n").includes(search);
    throw refused(
      path,
      mixed
        ? "the text of SEARCH is in it with other line endings: some of its lines end with CRLF, others with LF"
        : "the text of SEARCH is not in it",
    );
  }
  if (text.indexOf(search, first + 1) !== -1)
    throw refused(path, "the text of SEARCH is in it more than once");
  return text.slice(0, first) + replace + text.slice(first + search.length);
}

/** A new file cannot be the folder of another. */
function checkFolders(paths: string[]): void {
  for (const path of paths) {
    const inside = paths.find((other) => other.startsWith(`${path}/`));
    if (inside !== undefined) throw refused(inside, `${path} is to be a file`);
  }
}

/** A path as models write it: in backticks, in bold, as a heading, before a colon. */
function unquote(line: string): string {
  const text = line.trim();
  const inner = text
    .replace(/^#{1,6} |:$/g, "")
    .replace(/^`([^`]+)`$/, "$1")
    .replace(/^(\*\*?)([^*]+)\1$/, "$2");
  return inner === text ? text : unquote(inner);
}

function findLine(lines: string[], wanted: string, from: number): number {
  return lines.findIndex((line, index) => index >= from && line.trimEnd() === wanted);
}

/** Each line with its end, so that what follows is joined as it was. */
function body(lines: string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

function unreadable(line: number, why: string): EvolutionWorkerError {
  const message = `The search/replace block at line ${line + 1} ${why}.`;
  return new EvolutionWorkerError("EVOLUTION_EDITS", message, { field: "edits" });
}
