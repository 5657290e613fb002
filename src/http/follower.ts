import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Writable } from "node:stream";
import type { Snapshot } from "./snapshot.js";
import type { JobEvent, LogLineJson } from "./types.js";

/** A client that takes nothing for so long is gone. */
const PATIENCE_MS = 60_000;

/** What a client has seen: in every event's id, and back in Last-Event-ID. */
interface Place {
  attemptNo: number;
  seq: number;
  version: string;
}

/** Lines behind a place that the snapshot does not hold any more. */
export type ReadLines = (after: { attemptNo: number; seq: number }) => Promise<LogLineJson[]>;

/**
 * One client of a job's stream. It is told what is new to it, event by event and at its own pace: nothing waits for it
 * but its own place, so a slow one costs no memory.
 */
export class Follower {
  private place: Place | undefined;
  private readonly attemptsSeen = new Map<number, string>();
  private progressSeen = "";
  private latest: Snapshot | undefined;
  private telling = false;

  constructor(
    private readonly out: Writable,
    private readonly readLines: ReadLines,
    lastEventId: string | undefined,
  ) {
    this.place = parsePlace(lastEventId);
  }

  /** Tells what is new; while it still does, the newest snapshot waits for its turn. */
  async tell(snapshot: Snapshot): Promise<void> {
    this.latest = snapshot;
    if (this.telling) return;
    this.telling = true;
    try {
      while (this.latest && this.out.writable) {
        const next: Snapshot = this.latest;
        this.latest = undefined;
        await this.tellOne(next);
      }
    } catch {
      // The client is gone, or the database is: it comes back with its place.
      this.out.destroy();
    } finally {
      this.telling = false;
    }
  }

  /** Keeps proxies from closing a quiet connection. */
  beat(): void {
    if (!this.telling && this.out.writable) this.out.write(": still here\n\n");
  }

  /** The server stops; the client comes back with its place, to another one or later. */
  leave(): void {
    this.out.end();
  }

  private async tellOne(snapshot: Snapshot): Promise<void> {
    const { attemptNo, version, job, finished, result } = snapshot;
    const before = this.place;
    // Of the time before the first attempt there is nothing to forget.
    const begun = before !== undefined && before.attemptNo > 0 && attemptNo > before.attemptNo;
    const seq = before?.attemptNo === attemptNo ? before.seq : 0;
    // The new version counts as seen when all of it has been sent.
    this.place = { attemptNo, seq, version: before?.version ?? "" };
    if (begun) await this.send("reset", { attempt_no: attemptNo });
    if (before?.version !== version) {
      await this.send("state", job);
      await this.tellAttempts(snapshot, before?.attemptNo ?? 0);
      if (job.progress && job.progress.at !== this.progressSeen) await this.send("progress", job.progress);
      this.progressSeen = job.progress?.at ?? "";
    }
    await this.tellLines(snapshot);
    this.place.version = version;
    if (!finished) return;
    if (result) await this.send("result", result);
    await this.send("end", { state: job.state }, ".end");
    this.out.end();
  }

  private async tellAttempts({ attempts }: Snapshot, from: number): Promise<void> {
    for (const attempt of attempts.filter(({ attempt_no }) => attempt_no >= from)) {
      const digest = createHash("md5").update(JSON.stringify(attempt)).digest("base64url");
      if (this.attemptsSeen.get(attempt.attempt_no) === digest) continue;
      this.attemptsSeen.set(attempt.attempt_no, digest);
      await this.send("attempt", attempt);
    }
  }

  private async tellLines({ attemptNo, lines, lastSeq }: Snapshot): Promise<void> {
    const place = this.place as Place;
    while (place.seq < lastSeq) {
      const kept = lines.filter(({ seq }) => seq > place.seq);
      const next =
        kept[0]?.seq === place.seq + 1 ? kept : await this.readLines({ attemptNo, seq: place.seq });
      const ours = next.filter((line) => line.attempt_no === attemptNo);
      if (ours.length === 0) return;
      for (const line of ours) {
        place.seq = line.seq;
        await this.send("log", line);
      }
    }
  }

  private async send<Name extends JobEvent["event"]>(
    event: Name,
    data: Extract<JobEvent, { event: Name }>["data"],
    mark = "",
  ): Promise<void> {
    const { attemptNo, seq, version } = this.place as Place;
    const id = `${attemptNo}.${seq}.${version}${mark}`;
    if (this.out.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)) return;
    await once(this.out, "drain", { signal: AbortSignal.timeout(PATIENCE_MS) });
  }
}

function parsePlace(id: string | undefined): Place | undefined {
  const [, attemptNo, seq, version = ""] = /^(\d{1,9})\.(\d{1,9})\.([0-9a-f]{0,32})/.exec(id ?? "") ?? [];
  return attemptNo === undefined ? undefined : { attemptNo: Number(attemptNo), seq: Number(seq), version };
}

/** Whether a client has seen the end of what a job is now. */
export function hasSeenEnd(lastEventId: string | undefined, version: string): boolean {
  return lastEventId?.endsWith(`.${version}.end`) ?? false;
}
