import { useSyncExternalStore } from "react";

// One line at the foot of the page that says what an action did.

let message = "";
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function show(next: string): void {
  message = next;
  for (const listener of listeners) listener();
}

export function say(next: string): void {
  clearTimeout(timer);
  show(next);
  timer = setTimeout(() => show(""), 5000);
}

export function Toast() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => message,
  );
  return (
    <div className="toast" role="status">
      {shown}
    </div>
  );
}
