import { useEffect, useRef } from "react";

/** Whether a key belongs to what the person is typing into. */
function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null
  );
}

/** Keys of the whole page, such as `j` or `ctrl+k`. Silent while a text is typed or a dialog is open. */
export function useKeys(keys: Record<string, () => void>): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const held = event.ctrlKey || event.metaKey;
      const action = latest.current[held ? `ctrl+${event.key}` : event.key];
      if (!action || event.altKey || event.defaultPrevented) return;
      if (!held && isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      event.preventDefault();
      action();
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);
}
