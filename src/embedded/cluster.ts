import { join } from "node:path";
import type { Binaries } from "./binaries.js";
import type { Place } from "./place.js";

/** One Postgres cluster: where it lives and what runs it. */
export interface Cluster {
  place: Place;
  data: string;
  log: string;
  binaries: Binaries;
  /** Settings of the server beyond ours. */
  settings: Record<string, string>;
}

/** The superuser, for migrations; the login without rights of its own, for all else; and their database. */
export const ADMIN = "oracle_admin";
export const LOGIN = "oracle_login";
export const DATABASE = "oracle";

export function clusterIn(place: Place, binaries: Binaries, settings: Record<string, string>): Cluster {
  const data = join(place.folder, "data");
  return { place, data, log: join(place.folder, "postgres.log"), binaries, settings };
}
