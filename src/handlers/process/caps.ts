// What one child may take, in bytes and in time.

/** The whole of a one-shot's stdout; one line of a warm child's. */
export const STDOUT_BYTES = 1_048_576;
/** One message of a child that speaks lines, in as many parts as it takes. */
export const MESSAGE_BYTES = 67_108_864;
/** What is kept of an attempt's stderr; the rest is read and dropped. */
export const STDERR_BYTES = 1_048_576;
/** How much of the end of stderr goes into the error of a child that died. */
export const STDERR_TAIL_BYTES = 2048;

// A worker gives up on an attempt 5 s after it was told to stop: the first two together must stay below that.

/** A warm child may answer a cancel so long before it is told to end. */
export const CANCEL_GRACE_MS = 1000;
/** From TERM to KILL. */
export const TERM_GRACE_MS = 2000;

/** A child that closed its stdout must end within this. */
export const LINGER_MS = 2000;
/** A child whose stdin was closed while it had nothing to do may end by itself so long. */
export const END_GRACE_MS = 1000;
/** How long pipes may stay open after the child's end, in the hands of somebody who left its group. */
export const PIPES_GRACE_MS = 500;
export const PIPES_TURN_MS = 25;
/** A warm child without work ends after this. */
export const IDLE_MS = 60_000;
