import type { Dispatcher } from "./core/dispatch.js";

/** Where an installation is, and what to let go of when it is closed. */
export interface Connection {
  url: string;
  directUrl?: string | undefined;
  /** Where migrations log in as somebody else than the workers do. */
  admin?: { url: string; logins: string[] };
  maxConnections: number | undefined;
  connectTimeoutSeconds: number | undefined;
  /** Announces what is submitted, beside the database's own wake-ups. */
  dispatcher?: Dispatcher | undefined;
  onClose?: () => Promise<void>;
}
