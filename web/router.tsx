import { type AnchorHTMLAttributes, type MouseEvent, useSyncExternalStore } from "react";

// Addresses are the state of the pages: path and filters. The History API is all that needs.

const changed = new Set<() => void>();

function tellAll(): void {
  for (const listener of changed) listener();
}

function subscribe(listener: () => void): () => void {
  if (changed.size === 0) window.addEventListener("popstate", tellAll);
  changed.add(listener);
  return () => {
    changed.delete(listener);
    if (changed.size === 0) window.removeEventListener("popstate", tellAll);
  };
}

export function useAddress(): { path: string; search: URLSearchParams } {
  const href = useSyncExternalStore(subscribe, () => window.location.pathname + window.location.search);
  const { pathname, searchParams } = new URL(href, window.location.origin);
  return { path: pathname, search: searchParams };
}

export function goTo(address: string, options: { replace?: boolean } = {}): void {
  if (options.replace) window.history.replaceState(null, "", address);
  else window.history.pushState(null, "", address);
  tellAll();
  if (!options.replace) window.scrollTo(0, 0);
}

/** The page's address with some of its filters changed; undefined or empty takes one away. */
export function withSearch(
  { path, search }: { path: string; search: URLSearchParams },
  changes: Record<string, string | undefined>,
): string {
  const next = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const text = next.toString();
  return text ? `${path}?${text}` : path;
}

/** An ordinary link that does not load the page anew; new tabs and middle clicks stay the browser's. */
export function Link({ href, onClick, ...rest }: { href: string } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const elsewhere = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0;
    if (event.defaultPrevented || elsewhere) return;
    event.preventDefault();
    goTo(href);
  };
  return <a {...rest} href={href} onClick={follow} />;
}
