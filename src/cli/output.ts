/** Where a command's answer goes: one line of JSON per document for machines, text for people. */
export interface Output {
  readonly json: boolean;
  /** Nobody reads any more (`| head`): a command that prints on and on may end. */
  readonly closed: boolean;
  /** Resolves when the text has left the process, so that an exit cuts nothing off. */
  show(document: unknown, forPeople: () => string): Promise<void>;
  /** A remark beside the answer; machines do not get it. */
  note(text: string): void;
}

export function createOutput(json: boolean): Output {
  let closed = false;
  return {
    json,
    get closed() {
      return closed;
    },
    show: (document, forPeople) =>
      new Promise((resolve) => {
        if (closed) return resolve();
        const text = json ? JSON.stringify(document) : forPeople();
        process.stdout.write(`${text}\n`, (error) => {
          closed ||= Boolean(error);
          resolve();
        });
      }),
    note: (text) => {
      if (!json) process.stderr.write(`${text}\n`);
    },
  };
}

/** A reader that leaves early is no fault: the command still finishes what it was asked to do. */
export function surviveClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}
