import { useEffect, useState } from "react";
import { jobStates } from "../../src/core/states.js";
import { goTo, Link, useAddress, withSearch } from "../router.js";
import { useSession } from "../session.js";
import { Icon, type IconName } from "../ui/icons.js";
import { lookOf } from "../ui/state.js";
import type { JobFilters } from "./filters.js";

/** The filters of the list; they live in the address, so that a link leads to the same list. */
export function FilterBar({ filters }: { filters: JobFilters }) {
  const address = useAddress();
  const { tenant_id } = useSession();
  const link = (changes: Record<string, string | undefined>) =>
    withSearch(address, { cursor: undefined, ...changes });
  return (
    <search className="stack">
      <nav className="chips" aria-label="State">
        <Chip
          href={link({ state: undefined, held: undefined })}
          current={!filters.state && !filters.held}
          word="All"
        />
        {jobStates.map((state) => (
          <Chip
            key={state}
            href={link({ state, held: undefined })}
            current={filters.state === state && !filters.held}
            word={lookOf(state).word}
            icon={lookOf(state).icon}
          />
        ))}
        <Chip
          href={link({ state: undefined, held: "true" })}
          current={!!filters.held}
          word="Held"
          icon="held"
        />
      </nav>
      <div className="filters">
        <FilterInput name="text" label="Id, key, type or error" value={filters.text} wide />
        <FilterInput name="type" label="Type" value={filters.type} />
        <FilterInput name="queue" label="Queue" value={filters.queue} />
        {tenant_id === null && <FilterInput name="tenant" label="Tenant" value={filters.tenant} />}
      </div>
    </search>
  );
}

function Chip(props: { href: string; current: boolean; word: string; icon?: IconName }) {
  return (
    <Link href={props.href} className="chip icon" aria-current={props.current ? "true" : undefined}>
      {props.icon && <Icon name={props.icon} />}
      {props.word}
    </Link>
  );
}

const TYPING_MS = 300;

/** Follows the address, and changes it once the person has stopped typing. */
function FilterInput(props: { name: string; label: string; value: string | undefined; wide?: boolean }) {
  const address = useAddress();
  const [text, setText] = useState(props.value ?? "");
  useEffect(() => setText(props.value ?? ""), [props.value]);
  const apply = (value: string) => {
    if (value.trim() === (props.value ?? "")) return;
    goTo(withSearch(address, { cursor: undefined, [props.name]: value.trim() }), { replace: true });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: only typing starts the wait
  useEffect(() => {
    const timer = setTimeout(() => apply(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input
      className={props.wide ? "input text" : "input"}
      type="search"
      aria-label={props.label}
      placeholder={props.label}
      maxLength={200}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => event.key === "Enter" && apply(text)}
    />
  );
}
