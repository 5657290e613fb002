-- Tokens for callers that come by HTTP. Only the hash is kept: whoever reads this table cannot use what it holds.
CREATE TABLE {schema}.tokens (
  token_id uuid NOT NULL PRIMARY KEY DEFAULT gen_random_uuid(),
  -- NULL: every tenant.
  tenant_id text CHECK (octet_length(tenant_id) BETWEEN 1 AND 800),
  role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  name text CHECK (octet_length(name) BETWEEN 1 AND 800),
  -- SHA-256 of 256 random bits: nothing to guess, so nothing to slow a guesser down with.
  token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_used_at timestamptz,
  revoked_at timestamptz
);

ALTER TABLE {schema}.tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON {schema}.tokens TO {role}_owner USING (true) WITH CHECK (true);

-- Whose token it is; no row for one that is unknown or revoked. Found by its hash, so the time it takes tells
-- nothing of a token that is nearly right. Its use is noted once a minute and by whoever comes first: a busy token
-- is not a row that requests wait for.
CREATE FUNCTION {schema}.verify_token(hash bytea) RETURNS TABLE (token_id uuid, tenant_id text, role text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  UPDATE {schema}.tokens SET last_used_at = clock_timestamp() WHERE ctid = ANY (ARRAY(
    SELECT t.ctid FROM {schema}.tokens t
    WHERE t.token_hash = hash AND t.revoked_at IS NULL
      AND (t.last_used_at IS NULL OR t.last_used_at < clock_timestamp() - interval '1 minute')
    FOR NO KEY UPDATE SKIP LOCKED));
  RETURN QUERY
    SELECT t.token_id, t.tenant_id, t.role FROM {schema}.tokens t
    WHERE t.token_hash = hash AND t.revoked_at IS NULL;
END
$$;

-- The server asks about a token it was shown; it reads no hashes, makes no tokens and revokes none.
REVOKE ALL ON FUNCTION {schema}.verify_token FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.verify_token TO {role}_server;
