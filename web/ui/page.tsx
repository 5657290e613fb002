import { type ReactNode, useEffect } from "react";
import { CommandLine } from "./copy.js";

/** A page's heading, what can be done with it, and the browser's title. */
export function PageHead(props: { title: string; beside?: ReactNode; actions?: ReactNode }) {
  useEffect(() => {
    document.title = `${props.title} · Oracle Worker`;
  }, [props.title]);
  return (
    <header className="page-head">
      <h1>{props.title}</h1>
      {props.beside}
      {props.actions && <div className="actions">{props.actions}</div>}
    </header>
  );
}

export function Panel(props: { title: string; aside?: ReactNode; children: ReactNode; flush?: boolean }) {
  return (
    <section className={props.flush ? "panel flush" : "panel"} aria-label={props.title}>
      <div className="panel-head">
        <h2>{props.title}</h2>
        {props.aside}
      </div>
      {props.children}
    </section>
  );
}

/** Nothing here yet: why, and the command that changes it. */
export function Empty(props: { title: string; children?: ReactNode; command?: string }) {
  return (
    <div className="empty">
      <p className="empty-title">{props.title}</p>
      {props.children && <p className="muted">{props.children}</p>}
      {props.command && <CommandLine command={props.command} />}
    </div>
  );
}

/** Keeps the space of what is still on its way. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div className="skeleton" aria-busy="true">
      <span className="visually-hidden">Loading</span>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the bars are all alike
        <i key={line} />
      ))}
    </div>
  );
}

export function ErrorNotice({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div className="notice tone-bad" role="alert">
      <span className="breaks">{error.message}</span>
      {retry && (
        <button type="button" className="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A list of names and values. */
export function Facts({ items }: { items: [name: string, value: ReactNode][] }) {
  return (
    <dl className="facts">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
