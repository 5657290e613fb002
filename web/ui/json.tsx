import { CopyButton } from "./copy.js";

const MOST_CHARACTERS = 100_000;

/** A JSON value as text, in a box of its own that scrolls. What users sent is only ever text here. */
export function Json({ value, what }: { value: unknown; what: string }) {
  const text = JSON.stringify(value, null, 2) ?? "";
  return (
    <div className="code-box">
      <CopyButton text={text} what={what} />
      <Text value={text} what={what} />
    </div>
  );
}

/** Text in a box that scrolls; a keyboard can scroll it too. */
export function Text({ value, what }: { value: string; what: string }) {
  const shown = value.length > MOST_CHARACTERS ? value.slice(0, MOST_CHARACTERS) : value;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <section className="code" aria-label={`${what}, as text`} tabIndex={0}>
      <pre>
        {shown}
        {shown.length < value.length &&
          `\n… ${value.length - shown.length} more characters: copy to see them`}
      </pre>
    </section>
  );
}
