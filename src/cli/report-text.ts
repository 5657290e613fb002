import type { Artifact, LogLine, Progress } from "../core/job.js";
import { type Colour, paint, printable } from "./style.js";
import { table } from "./table.js";

const levelColours: Record<LogLine["level"], Colour | undefined> = {
  info: undefined,
  warn: "yellow",
  error: "red",
};

/** `42 %, pages read`. */
export function progressText({ fraction, message }: Progress): string {
  const percent = `${Math.floor(fraction * 100)} %`;
  return message === undefined ? percent : `${percent}, ${printable(message)}`;
}

/** `warn  the message  {"its":"fields"}`, on one line. */
export function logLine({ level, message, fields }: LogLine): string {
  const shown = fields === null ? "" : `  ${paint(printable(JSON.stringify(fields)), "dim")}`;
  return `${paint(level.padEnd(5), levelColours[level])} ${printable(message)}${shown}`;
}

/** With the number of the attempt before each line. */
export function logTable(lines: readonly LogLine[]): string {
  return lines
    .map(
      (line) => `${paint(`${line.at.toTimeString().slice(0, 8)} ${line.attemptNo}`, "dim")} ${logLine(line)}`,
    )
    .join("\n");
}

export function artifactTable(artifacts: readonly Artifact[]): string {
  return table(artifacts, [
    { title: "NAME", value: ({ name }) => name },
    { title: "ATTEMPT", value: ({ attemptNo }) => attemptNo, align: "right" },
    { title: "SIZE", value: ({ size }) => size, align: "right" },
    { title: "TYPE", value: ({ mediaType }) => mediaType },
    { title: "SHA256", value: ({ sha256 }) => sha256 },
  ]);
}
