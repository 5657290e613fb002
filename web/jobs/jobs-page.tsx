import { Link, useAddress, withSearch } from "../router.js";
import { Icon } from "../ui/icons.js";
import { Empty, ErrorNotice, PageHead, Skeleton } from "../ui/page.js";
import { Time } from "../ui/time.js";
import { BulkActions } from "./bulk-actions.js";
import { FilterBar } from "./filter-bar.js";
import { type JobFilters, readFilters } from "./filters.js";
import { JobsTable } from "./jobs-table.js";
import { type SteadyJobs, useSteadyJobs } from "./use-steady-jobs.js";

export function JobsPage() {
  const { search } = useAddress();
  const filters = readFilters(search);
  const list = useSteadyJobs(filters);
  return (
    <>
      <PageHead title="Jobs" />
      <FilterBar filters={filters} />
      <div className="list-bar">
        <Freshness list={list} />
        <BulkActions filters={filters} />
      </div>
      <section className="panel flush list" aria-label="Jobs found">
        <Found list={list} filters={filters} />
      </section>
      <Pager list={list} filters={filters} />
    </>
  );
}

/** Says what changed since; its place is kept when there is nothing to say. */
function Freshness({ list }: { list: SteadyJobs }) {
  const parts = [
    list.fresh > 0 && `${list.fresh} new`,
    list.gone.size > 0 && `${list.gone.size} moved on`,
  ].filter(Boolean);
  if (parts.length === 0) return <span className="muted">Live</span>;
  return (
    <button type="button" className="button" onClick={list.showFresh}>
      <Icon name="retry" />
      {parts.join(", ")}: show
    </button>
  );
}

function Found({ list, filters }: { list: SteadyJobs; filters: JobFilters }) {
  if (list.error) return <ErrorNotice error={list.error} retry={list.retry} />;
  if (!list.page) return <Skeleton lines={12} />;
  if (list.page.items.length > 0) return <JobsTable jobs={list.page.items} gone={list.gone} />;
  const filtered = Object.values(filters).some(Boolean);
  if (filtered) {
    return <Empty title="No job fits these filters">Take one away, or wait: the list is live.</Empty>;
  }
  return (
    <Empty
      title="No jobs yet"
      command={`oracle-worker enqueue summarize_text --input '{"text": "Hello from my first job."}'`}
    >
      Submit one from a terminal:
    </Empty>
  );
}

function Pager({ list, filters }: { list: SteadyJobs; filters: JobFilters }) {
  const address = useAddress();
  const { next, searched_until } = list.page ?? {};
  return (
    <nav className="pager" aria-label="Older and newer">
      {filters.cursor ? (
        <Link className="button" href={withSearch(address, { cursor: undefined })}>
          Newest
        </Link>
      ) : (
        <span />
      )}
      {searched_until && (
        <span className="muted small">
          searched back to <Time at={searched_until} />
        </span>
      )}
      {next ? (
        <Link className="button" href={withSearch(address, { cursor: next })}>
          Older
          <Icon name="next" />
        </Link>
      ) : (
        <span />
      )}
    </nav>
  );
}
