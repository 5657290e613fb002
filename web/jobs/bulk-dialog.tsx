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
    which: "failed or cancelled",
    does: "They go back to their queues with one more attempt each. Their history stays.",
    done: "retried",
  },
  cancel: {
    title: "Cancel jobs",
    verb: "Cancel",
    which: "unfinished",
    does: "Waiting jobs end at once; running ones are told to stop. A cancelled job can be retried later.",
    done: "cancelled",
  },
};

/** Says how many jobs it would change before it changes them. */
export function BulkDialog(props: { verb: BulkVerb; filters: JobFilters; onClose: () => void }) {
  const queries = useQueryClient();
  const { title, verb, does, done, ...text } = words[props.verb];
  const { state } = props.filters;
  const which = state ? lookOf(state).word.toLowerCase() : text.which;
  const count = useQuery({
    queryKey: ["bulk-count", props.verb, props.filters],
    queryFn: () => change(props.verb, props.filters, true),
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

function change(verb: BulkVerb, filters: JobFilters, dryRun: boolean): Promise<AnswerOf<"retryJobs">> {
  const { tenant, cursor: _, ...filter } = filters;
  const request = { query: { tenant }, body: { ...filter, dry_run: dryRun } };
  return verb === "retry" ? api.retryJobs(request) : api.cancelJobs(request);
}

/** The server changes a bounded number per call. */
async function changeAll(verb: BulkVerb, filters: JobFilters): Promise<number> {
  for (let total = 0; ; ) {
    const { changed, matched } = await change(verb, filters, false);
    total += changed;
    if (!matched.more || changed === 0) return total;
  }
}
