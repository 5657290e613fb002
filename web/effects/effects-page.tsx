import { useQuery } from "@tanstack/react-query";
import { api, LIVE_MS } from "../api.js";
import { Link, useAddress, withSearch } from "../router.js";
import { Icon } from "../ui/icons.js";
import { Empty, ErrorNotice, PageHead, Skeleton } from "../ui/page.js";
import { lookOf } from "../ui/state.js";
import { EffectRecord } from "./effect-record.js";

const states = ["IN_DOUBT", "PLANNED", "DISPATCHED", "CONFIRMED", "FAILED"] as const;

export function EffectsPage() {
  const address = useAddress();
  const { search } = address;
  const state = states.find((known) => known === search.get("state"));
  const cursor = search.get("cursor") ?? undefined;
  const { data, error, refetch } = useQuery({
    queryKey: ["effects", state, cursor],
    queryFn: ({ signal }) => api.listEffects({ query: { state, cursor } }, signal),
    refetchInterval: LIVE_MS,
  });
  const link = (next: string | undefined) => withSearch(address, { state: next, cursor: undefined });
  return (
    <>
      <PageHead title="Effects" />
      <nav className="chips" aria-label="State">
        <Link href={link(undefined)} className="chip" aria-current={state ? undefined : "true"}>
          All
        </Link>
        {states.map((each) => (
          <Link
            key={each}
            href={link(each)}
            className="chip icon"
            aria-current={state === each ? "true" : undefined}
          >
            <Icon name={lookOf(each).icon} />
            {lookOf(each).word}
          </Link>
        ))}
      </nav>
      <section className="panel list" aria-label="Effects found">
        {error && !data && <ErrorNotice error={error} retry={() => void refetch()} />}
        {!data && !error && <Skeleton lines={8} />}
        {data?.items.length === 0 && <NoEffects doubtful={state === "IN_DOUBT"} />}
        <ul className="records">
          {data?.items.map((effect) => (
            <EffectRecord key={effect.effect_id} effect={effect} withJob />
          ))}
        </ul>
      </section>
      {data?.next && (
        <nav className="pager" aria-label="Older and newer">
          <span />
          <Link className="button" href={withSearch(address, { cursor: data.next })}>
            Older
            <Icon name="next" />
          </Link>
        </nav>
      )}
    </>
  );
}

function NoEffects({ doubtful }: { doubtful: boolean }) {
  if (doubtful) return <Empty title="No effect is in doubt">Nobody has to look anything up.</Empty>;
  return (
    <Empty title="No effects here" command="oracle-worker effects list">
      Handlers record calls to the outside with effect(); they appear here before they are sent.
    </Empty>
  );
}
