import type pg from "pg";

export interface Bytes {
  wal: number;
  table: number;
  index: number;
}

/** WAL written by the server so far; tables (with TOAST) and indexes of this database. */
export async function bytesIn(client: pg.Client): Promise<Bytes> {
  const { rows } = await client.query<Bytes>(
    `select (pg_current_wal_insert_lsn() - '0/0')::float8 as wal,
       sum(pg_table_size(c.oid))::float8 as "table", sum(pg_indexes_size(c.oid))::float8 as "index"
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname not like 'pg\\_%' and n.nspname <> 'information_schema'`,
  );
  return rows[0] ?? { wal: 0, table: 0, index: 0 };
}
