import { writeSync } from "node:fs";
import type { Journal } from "./slots.js";

/** The file descriptor on which a worker process tells its supervisor which jobs it starts and ends. */
export const JOURNAL_FD = 4;

/**
 * Tells the supervisor what runs, on a pipe and without waiting for the event loop: what was written is read
 * even if this process dies in the next instruction. Ends wait for the next start or the next turn of the loop;
 * that a crash charges a job that just ended does no harm, its outcome is settled or it is not.
 */
export function pipeJournal(): Journal {
  let ends = "";
  let scheduled = false;
  const flush = (starts: string) => {
    write(ends + starts);
    ends = "";
  };
  return {
    started(jobIds) {
      flush(`+${jobIds.join("\n+")}\n`);
    },
    ended(jobId) {
      ends += `-${jobId}\n`;
      if (scheduled) return;
      scheduled = true;
      setImmediate(() => {
        scheduled = false;
        if (ends) flush("");
      });
    },
    groupOpened: (pid) => flush(`(${pid}\n`),
    groupClosed: (pid) => flush(`)${pid}\n`),
  };
}

/** Says that this process should be replaced: its event loop is blocked and cannot end by itself. */
export function askForReplacement(): void {
  write("!\n");
}

/** The pipe is non-blocking; the supervisor empties it all the time, so a full one is waited for. */
function write(text: string): void {
  let bytes = Buffer.from(text);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(JOURNAL_FD, bytes));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN") continue;
      return; // The supervisor is gone; this process is about to end too.
    }
  }
}
