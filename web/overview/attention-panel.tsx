import type { ReactNode } from "react";
import type { StatsJson } from "../../src/http/client.js";
import { Link } from "../router.js";
import { CommandLine } from "../ui/copy.js";
import type { IconName } from "../ui/icons.js";
import { countWords } from "../ui/numbers.js";
import { Panel } from "../ui/page.js";
import { Badge } from "../ui/state.js";

/** What does not go on by itself. */
export function AttentionPanel({ attention }: { attention: StatsJson["attention"] }) {
  const { held, effects_in_doubt, dead_letters, unserved_types } = attention;
  const quiet = held.count + effects_in_doubt.count + dead_letters.count + unserved_types.length === 0;
  return (
    <Panel title="Needs a person" flush>
      <ul className="needs">
        {quiet && (
          <li>
            <Badge tone="good" icon="check" word="Nothing does" />
            <span className="muted">
              Held jobs, doubtful effects, failed jobs and unserved types appear here.
            </span>
          </li>
        )}
        {held.count > 0 && (
          <Need tone="warn" icon="held" word={countWords(held, "held job")} href="/jobs?held=true">
            wait for an approval or a decision
          </Need>
        )}
        {effects_in_doubt.count > 0 && (
          <Need
            tone="warn"
            icon="question"
            word={`${countWords(effects_in_doubt, "effect")} in doubt`}
            href="/effects?state=IN_DOUBT"
          >
            somebody must look whether the call went through
          </Need>
        )}
        {dead_letters.count > 0 && (
          <Need
            tone="bad"
            icon="cross"
            word={countWords(dead_letters, "failed job")}
            href="/jobs?state=FAILED_TERMINAL"
          >
            have used up their attempts, or cannot succeed
          </Need>
        )}
        {unserved_types.map(({ type, waiting }) => (
          <Need
            key={type}
            tone="bad"
            icon="question"
            word={`${countWords(waiting, "job")} nobody serves`}
            href={`/jobs?${new URLSearchParams({ type })}`}
          >
            <span className="breaks">no live worker has a handler for type {type}:</span>
            <CommandLine command="oracle-worker work --handlers ./jobs" />
          </Need>
        ))}
      </ul>
    </Panel>
  );
}

function Need(props: {
  tone: "warn" | "bad";
  icon: IconName;
  word: string;
  href: string;
  children: ReactNode;
}) {
  return (
    <li>
      <Badge tone={props.tone} icon={props.icon} word={props.word} />
      <span className="muted row">{props.children}</span>
      <Link className="button" href={props.href}>
        Look
      </Link>
    </li>
  );
}
