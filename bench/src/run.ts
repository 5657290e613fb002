import pg from "pg";
import { type Child, spawnChild } from "./children.ts";
import { short } from "./report/ratios.ts";
import type { RoleName, RoleParams } from "./roles/index.ts";
import type { PostgresServer } from "./servers/postgres.ts";
import type { RedisServer } from "./servers/redis.ts";
import type { Contestant, Measurement, Options, Place } from "./types.ts";

export interface Servers {
  postgres: PostgresServer;
  redis: RedisServer | undefined;
}

export interface Workload {
  name: string;
  title: string;
  /** What is measured and how, for the table. */
  about: string;
  /** Why this contestant takes no part; undefined when it does. */
  excludes(contestant: Contestant, options: Options): string | undefined;
  /** Rounds unless --rounds says otherwise. */
  rounds(quick: boolean): number;
  /** False where a ratio would compare what does not compare. */
  ratios?: false;
  /** PostgreSQL settings beside the defaults; the server restarts for them. */
  postgresSettings?: Record<string, string>;
  /** One contestant, one round. */
  run(run: Run): Promise<Measurement[]>;
}

/** What a workload works with: one contestant in one round. Everything it opened is gone after `end`. */
export class Run {
  readonly contestant: Contestant;
  readonly options: Options;
  readonly #servers: Servers;
  readonly #children: Array<Child<RoleName>> = [];
  readonly #clients: pg.Client[] = [];
  readonly #databases: string[] = [];
  readonly #label: string;
  static #databaseNumber = 0;

  constructor(contestant: Contestant, options: Options, servers: Servers, label: string) {
    this.#label = label;
    this.contestant = contestant;
    this.options = options;
    this.#servers = servers;
  }

  /** How far it is: what takes minutes must not be silent until its end. */
  say(text: string): void {
    console.error(`    ${this.#label}: ${text}`);
  }

  /** Says a figure as soon as it is there. */
  tell(measurement: Measurement): Measurement {
    const { metric, value, unit } = measurement;
    this.say(`${metric} ${short(value)} ${unit}`);
    return measurement;
  }

  /** Jobs of this run: --jobs, else the workload's size, cut for contestants that declare themselves slow. */
  jobs(full: number, quick: number): number {
    const asked = this.options.jobs ?? (this.options.quick ? quick : full);
    return Math.max(100, Math.round(asked * (this.contestant.jobsShare ?? 1)));
  }

  seconds(full: number, quick: number): number {
    return this.options.seconds ?? (this.options.quick ? quick : full);
  }

  /** A fresh database and an empty Redis, so that nobody starts in what another left behind. */
  async freshPlace(): Promise<Place> {
    const { postgres, redis } = this.#servers;
    await redis?.reset(this.contestant.redisConfig ?? {});
    const database = `bench_${++Run.#databaseNumber}`;
    await postgres.admin().query(`create database ${database}`);
    this.#databases.push(database);
    return { postgresUrl: postgres.url(database), redisUrl: redis?.url ?? "" };
  }

  /** The driver's own connection to a place, for what only the database can tell. */
  async client(place: Place): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: place.postgresUrl });
    client.on("error", () => undefined);
    await client.connect();
    this.#clients.push(client);
    return client;
  }

  admin(): pg.Client {
    return this.#servers.postgres.admin();
  }

  /**
   * Statistics and a checkpoint, so that neither falls into what is measured next. Without fresh statistics pg-boss
   * settles ten times slower (a nested loop), and whether autovacuum comes in time would be luck.
   */
  async settle(place: Place): Promise<void> {
    if (this.contestant.store !== "postgres") return;
    const client = await this.client(place);
    await client.query("vacuum analyze");
    await client.query("checkpoint");
  }

  spawn<R extends RoleName>(
    role: R,
    params: RoleParams[R],
    place: Place,
    env?: Record<string, string>,
  ): Child<R> {
    const child = spawnChild(this.contestant.name, role, params, place, env);
    this.#children.push(child as unknown as Child<RoleName>);
    return child;
  }

  async end(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()));
    await Promise.all(this.#clients.map((client) => client.end().catch(() => undefined)));
    const admin = this.#servers.postgres.admin();
    for (const database of this.#databases)
      await admin.query(`drop database if exists ${database} with (force)`);
    await admin.query("checkpoint");
  }
}
