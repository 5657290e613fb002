import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { goTo } from "../router.js";
import { Icon } from "../ui/icons.js";
import { type Found, useSearch } from "./use-search.js";

/** Finds a job, a type or a page without the mouse. */
export function Search({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = useSearch(text);
  const current = Math.min(at, found.length - 1);
  useEffect(() => dialog.current?.showModal(), []);
  const open = (target: Found | undefined) => {
    if (!target) return;
    onClose();
    goTo(target.href);
  };
  const press = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (event.key === "Enter") open(found[current]);
    else if (step && found.length > 0) setAt((current + step + found.length) % found.length);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} className="palette" aria-label="Search" onClose={onClose}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={found.length > 0 ? `found-${current}` : undefined}
        aria-label="Job id, type or page"
        placeholder="Job id, type or page"
        autoComplete="off"
        spellCheck={false}
        maxLength={200}
        value={text}
        onKeyDown={press}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
      />
      <div id="found" role="listbox" aria-label="Found">
        {found.map((each, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the input's, which keeps the focus
          <div
            key={each.href}
            id={`found-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onMouseMove={() => setAt(index)}
            onClick={() => open(each)}
          >
            <Icon name={each.icon} />
            <span className="clip">{each.text}</span>
            <span className="muted small">{each.note}</span>
          </div>
        ))}
      </div>
      <p className="palette-hint" aria-hidden="true">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> choose
        </span>
        <span>
          <kbd>Enter</kbd> open
        </span>
        <span>
          <kbd>Esc</kbd> close
        </span>
        <span>
          in lists: <kbd>j</kbd> <kbd>k</kbd>
        </span>
      </p>
    </dialog>
  );
}
