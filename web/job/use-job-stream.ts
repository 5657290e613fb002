import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { AttemptJson, JobEvent, JobWithInputJson, LogLineJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { keys } from "./use-job.js";
import { mergeLines } from "./use-logs.js";

const AGAIN_MS = 2_000;

export interface JobStream {
  connected: boolean;
  /** How often the lease of the current attempt was renewed while this page looked on. */
  renewals: number;
}

/** Follows an unfinished job: what the server tells is put where the page's parts read it. */
export function useJobStream(jobId: string, unfinished: boolean): JobStream {
  const queries = useQueryClient();
  const [stream, setStream] = useState<JobStream>({ connected: false, renewals: 0 });
  useEffect(() => {
    if (!unfinished) return;
    const stop = new AbortController();
    const notice = (event: JobEvent) => {
      const renewed = event.event === "state" && isRenewal(queries.getQueryData(keys.job(jobId)), event.data);
      const reset = event.event === "reset";
      setStream((before) => ({ connected: true, renewals: reset ? 0 : before.renewals + (renewed ? 1 : 0) }));
      keep(queries, jobId, event);
    };
    void follow(jobId, stop.signal, notice, () => setStream((before) => ({ ...before, connected: false })));
    return () => stop.abort();
  }, [jobId, unfinished, queries]);
  return unfinished ? stream : { connected: false, renewals: 0 };
}

async function follow(
  jobId: string,
  signal: AbortSignal,
  onEvent: (event: JobEvent) => void,
  onBreak: () => void,
): Promise<void> {
  let lastEventId: string | undefined;
  while (!signal.aborted) {
    try {
      const from = lastEventId === undefined ? {} : { lastEventId };
      for await (const event of api.followJob(jobId, { ...from, signal })) {
        lastEventId = event.id;
        onEvent(event);
      }
      return;
    } catch {
      if (signal.aborted) return;
      // The server is away; the page says so and asks again.
      onBreak();
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

function keep(queries: QueryClient, jobId: string, event: JobEvent): void {
  switch (event.event) {
    case "state":
      queries.setQueryData(keys.job(jobId), event.data);
      break;
    case "attempt":
      queries.setQueryData(keys.attempts(jobId), (attempts: AttemptJson[] = []) =>
        merge(attempts, event.data),
      );
      break;
    case "progress":
      queries.setQueryData(
        keys.job(jobId),
        (job?: JobWithInputJson) => job && { ...job, progress: event.data },
      );
      break;
    case "log":
      queries.setQueryData(keys.logs(jobId, event.data.attempt_no), (lines: LogLineJson[] = []) =>
        mergeLines(lines, [event.data]),
      );
      break;
    case "result":
      queries.setQueryData(keys.result(jobId), event.data);
      break;
    case "end":
      void queries.invalidateQueries({ queryKey: keys.job(jobId) });
      break;
  }
}

function merge(attempts: AttemptJson[], changed: AttemptJson): AttemptJson[] {
  const others = attempts.filter((attempt) => attempt.attempt_no !== changed.attempt_no);
  return [...others, changed].sort((a, b) => a.attempt_no - b.attempt_no);
}

function isRenewal(before: JobWithInputJson | undefined, now: JobWithInputJson): boolean {
  if (!before?.lease_expires_at || !now.lease_expires_at) return false;
  return (
    before.current_attempt_id === now.current_attempt_id && before.lease_expires_at < now.lease_expires_at
  );
}
