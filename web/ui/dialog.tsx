import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";

/** The browser's own modal dialog: it traps the focus and closes on Escape. */
export function Dialog(props: { title: string; onClose: () => void; children: ReactNode; wide?: boolean }) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog
      ref={element}
      className={props.wide ? "dialog wide" : "dialog"}
      aria-labelledby={titleId}
      onClose={props.onClose}
    >
      <h2 id={titleId}>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

interface ActionDialogProps {
  title: string;
  /** What will happen, in one or two sentences. */
  explains: ReactNode;
  verb: string;
  danger?: boolean;
  wide?: boolean;
  disabled?: boolean;
  busy: boolean;
  error: Error | null;
  onConfirm: () => void;
  onClose: () => void;
  children?: ReactNode;
}

/** A question before an action: what it will do, a way back, and the error if it was refused. */
export function ActionDialog(props: ActionDialogProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    props.onConfirm();
  };
  return (
    <Dialog title={props.title} onClose={props.onClose} wide={props.wide ?? false}>
      <form onSubmit={submit} className="stack">
        <div className="muted breaks">{props.explains}</div>
        {props.children}
        <p className="form-error" role="alert">
          {props.error?.message}
        </p>
        <div className="actions end">
          <button type="button" className="button" onClick={props.onClose}>
            Back
          </button>
          <button
            type="submit"
            className={props.danger ? "button danger" : "button primary"}
            disabled={props.busy || props.disabled}
          >
            {props.verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
