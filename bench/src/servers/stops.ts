/** What has to be stopped however the run ends; the last started goes first. */
const stops: Array<{ name: string; stop: () => Promise<void> }> = [];

/** Returns a function that takes it off the list again, for what has ended in the ordinary way. */
export function stopAtEnd(name: string, stop: () => Promise<void>): () => void {
  const entry = { name, stop };
  stops.push(entry);
  return () => {
    const at = stops.indexOf(entry);
    if (at >= 0) stops.splice(at, 1);
  };
}

export async function stopAll(): Promise<void> {
  for (let next = stops.pop(); next; next = stops.pop()) {
    try {
      await next.stop();
    } catch (error) {
      console.error(`bench: could not stop ${next.name}: ${error instanceof Error ? error.message : error}`);
    }
  }
}

let stopping = false;

/** Never resolves once a signal has come: what fails then fails because its servers go, and is no finding. */
export async function haltIfStopping(): Promise<void> {
  if (stopping) await new Promise(() => undefined);
}

export function stopOnSignals(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      console.error(`\nbench: ${signal}, stopping the servers …`);
      void stopAll().finally(() => process.exit(130));
    });
  }
}
