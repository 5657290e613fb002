import { withAdminClient } from "../migrate.js";
import { type Check, ok, warn } from "./check.js";

interface Holder {
  kind: "transaction" | "prepared" | "slot";
  name: string;
  who: string;
  seconds: number | null;
}

// While one of these is there, vacuum removes nothing that was deleted since: queues grow, claims slow down.
// Other logins' transactions are seen by members of pg_read_all_stats.
const readHolders = `
  SELECT 'transaction' AS kind, a.pid::text AS name,
    format('%s (%s, %s)', a.usename, coalesce(nullif(a.application_name, ''), 'no name'), a.state) AS who,
    extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds
  FROM pg_catalog.pg_stat_activity a
  WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type = 'client backend'
    AND a.xact_start < clock_timestamp() - make_interval(secs => $1)
  UNION ALL
  SELECT 'prepared', p.gid, p.owner::text, extract(epoch FROM clock_timestamp() - p.prepared)::float8
  FROM pg_catalog.pg_prepared_xacts p
  WHERE p.database = current_database() AND p.prepared < clock_timestamp() - make_interval(secs => $1)
  UNION ALL
  SELECT 'slot', s.slot_name::text, s.slot_type, NULL
  FROM pg_catalog.pg_replication_slots s WHERE NOT s.active AND s.restart_lsn IS NOT NULL
  ORDER BY 4 DESC NULLS LAST LIMIT 20`;

const USUAL_SECONDS = 300;

/** Transactions that stay open, and whose they are. */
export const snapshots = (olderThanSeconds = USUAL_SECONDS): Check => ({
  name: "snapshots",
  async examine({ admin }) {
    const holders = await withAdminClient(admin, async (client) => {
      const { rows } = await client.query<Holder>(readHolders, [olderThanSeconds]);
      return rows;
    });
    if (holders.length === 0) return ok("no transaction is open for long");
    return holders.map(describe);
  },
});

function describe({ kind, name, who, seconds }: Holder) {
  const minutes = Math.round((seconds ?? 0) / 60);
  if (kind === "slot") {
    const message = `nobody reads the ${who} replication slot ${name}: it keeps old rows or WAL`;
    return warn(message, `start its reader, or SELECT pg_drop_replication_slot('${name}')`);
  }
  if (kind === "prepared") {
    const message = `the prepared transaction ${name} of ${who} has waited for ${minutes} minutes`;
    return warn(message, `COMMIT PREPARED '${name}' or ROLLBACK PREPARED '${name}'`);
  }
  const message = `a transaction of ${who} has been open for ${minutes} minutes: vacuum cannot clean up behind it`;
  return warn(message, `end it, or SELECT pg_terminate_backend(${name})`);
}
