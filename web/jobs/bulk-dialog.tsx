import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { AnswerOf } from "../../src/http/client.js";
import { api } from "../api.js";
import { ActionDialog } from "../ui/dialog.js";
import { countWords } from "../ui/numbers.js";
import { lookOf } from "../ui/state.js";
import { say } from "../ui/toast.js";
import { describeFilters, type JobFilters } from "./filters.js";

export type BulkVerb = "retry" | "cancel";

const words = {
  retry: {
    title: "Retry jobs",
    verb: "Retry",
    does: "They go back to their queues with one more attempt each. Their history stays.",
    done: "retried",
  },
  cancel: {
    title: "Cancel jobs",
    verb: "Cancel",
    does: "Waiting jobs end at once; running ones are told to stop. A cancelled job can be retried later.",
    done: "cancelled",
  },
};

/** Says how many jobs it would change before it changes them. */
export function BulkDialog(props: { verb: BulkVerb; filters: JobFilters; onClose: () => void }) {
  const queries = useQueryClient();
  const { title, verb, does, done } = words[props.verb];
  const { state } = props.filters;
  const which = state ? lookOf(state).word.toLowerCase() : "waiting for a person";
  const count = useQuery({
    queryKey: ["bulk-count", props.verb, props.filters],
    queryFn: () => change(props.verb, props.filters, { dry_run: true }),
    gcTime: 0,
  });
  const act = useMutation({
    mutationFn: () => changeAll(props.verb, props.filters),
    onSuccess: async (changed) => {
      say(`${countWords({ count: changed, more: false }, "job")} ${done}`);
      props.onClose();
      await queries.invalidateQueries();
    },
  });
  const matched = count.data?.matched;
  const amount = matched ? countWords(matched, "job") : "… jobs";
  const filter = describeFilters(props.filters);
  return (
    <ActionDialog
      title={title}
      verb={`${verb} ${amount}`}
      danger={props.verb === "cancel"}
      busy={act.isPending || !matched}
      disabled={matched?.count === 0}
      error={act.error ?? count.error}
      onConfirm={() => act.mutate()}
      onClose={props.onClose}
      explains={
        <>
          <strong>{amount}</strong> {filter ? `${filter}, ` : ""}
          {which}. {does}
        </>
      }
    />
  );
}

function change(verb: BulkVerb, filters: JobFilters, more: { dry_run?: boolean; cursor?: string }) {
  const { tenant, cursor: _, ...filter } = filters;
  const request = { query: { tenant }, body: { ...filter, ...more } };
  return verb === "retry" ? api.retryJobs(request) : api.cancelJobs(request);
}

/** The server changes a bounded number per call, and says where it stopped. */
async function changeAll(verb: BulkVerb, filters: JobFilters): Promise<number> {
  let total = 0;
  let cursor: string | null = null;
  do {
    const answer: AnswerOf<"retryJobs"> = await change(verb, filters, cursor === null ? {} : { cursor });
    total += answer.changed;
    cursor = answer.next;
  } while (cursor !== null);
  return total;
}
