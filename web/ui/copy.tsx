import { useEffect, useState } from "react";
import { Icon } from "./icons.js";

/** Copies a text; says so for a moment, by shape and to a screen reader. */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      className="copy"
      aria-label={copied ? "Copied" : `Copy ${what}`}
      title={copied ? "Copied" : `Copy ${what}`}
      onClick={(event) => {
        event.stopPropagation();
        void copy(text).then(() => setCopied(true));
      }}
    >
      <Icon name={copied ? "check" : "copy"} />
    </button>
  );
}

/** Browsers offer their clipboard on secure addresses only; plain http on a network needs the older way. */
async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** A command line to copy. */
export function CommandLine({ command }: { command: string }) {
  return (
    <div className="command">
      <code>{command}</code>
      <CopyButton text={command} what="command" />
    </div>
  );
}

/** A long identifier: short to read, whole on hover and when copied. */
export function Id({ value, what = "id" }: { value: string; what?: string }) {
  return (
    <span className="id">
      <span title={value}>{shortId(value)}</span>
      <CopyButton text={value} what={what} />
    </span>
  );
}

export function shortId(value: string): string {
  return value.length <= 14 ? value : `${value.slice(0, 8)}…${value.slice(-4)}`;
}
