import pg from "pg";
import type { Database } from "./database.js";

const CHECK_EVERY_MS = 20_000;
const CHECK_WITHIN_MS = 5_000;
const RECONNECT_MS = 1_000;

export interface ListenEvents {
  onMessage(payload: string): void;
  /** The connection is deaf or gone; polling carries on alone until `onRestored`. */
  onLost(why: string): void;
  onRestored(): void;
}

/**
 * The LISTEN connection. It checks itself: a notification to itself must come back, because a half-open
 * connection looks healthy and hears nothing.
 */
export class Listener {
  private client: pg.Client | undefined;
  private checkTimer: NodeJS.Timeout | undefined;
  private answerTimer: NodeJS.Timeout | undefined;
  private reconnectTimer: NodeJS.Timeout | undefined;
  private stopped = false;
  private down = false;
  private readonly channel: string;
  private readonly ping = `ping-${Math.random().toString(36).slice(2)}`;

  constructor(
    private readonly db: Database,
    private readonly events: ListenEvents,
  ) {
    this.channel = `${db.schema}_wake`;
  }

  /** Resolves after the first attempt to connect, whatever came of it. */
  async start(): Promise<void> {
    const client = new pg.Client(this.db.connectionConfig(this.db.directUrl));
    this.client = client;
    client.on("error", (error) => this.lose(client, error.message));
    client.on("end", () => this.lose(client, "the connection ended"));
    client.on("notification", (message) => this.hear(message.payload ?? ""));
    try {
      await client.connect();
      await client.query(`LISTEN ${this.channel}`);
      if (this.stopped) return void (await client.end());
      if (this.down) this.events.onRestored();
      this.down = false;
      this.checkTimer = setTimeout(() => this.check(client), CHECK_EVERY_MS).unref();
    } catch (error) {
      this.lose(client, (error as Error).message);
    }
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.checkTimer);
    clearTimeout(this.answerTimer);
    clearTimeout(this.reconnectTimer);
    const { client } = this;
    this.client = undefined;
    await client?.end().catch(() => {});
  }

  private hear(payload: string): void {
    if (payload === this.ping) clearTimeout(this.answerTimer);
    else this.events.onMessage(payload);
  }

  private check(client: pg.Client): void {
    this.answerTimer = setTimeout(() => this.lose(client, "it did not hear itself"), CHECK_WITHIN_MS).unref();
    client.query("SELECT pg_notify($1, $2)", [this.channel, this.ping]).catch(() => {});
    this.checkTimer = setTimeout(() => this.check(client), CHECK_EVERY_MS).unref();
  }

  private lose(client: pg.Client, why: string): void {
    if (client !== this.client) return;
    this.client = undefined;
    clearTimeout(this.checkTimer);
    clearTimeout(this.answerTimer);
    client.end().catch(() => {});
    if (this.stopped) return;
    if (!this.down) this.events.onLost(why);
    this.down = true;
    this.reconnectTimer = setTimeout(() => void this.start(), RECONNECT_MS).unref();
  }
}
