-- The four roles of an installation, named after its schema because roles belong to the whole cluster.
-- Runs before every migration; needs CREATEROLE only while a role is missing.
--   owner   owns every object; used by migrations and by functions that act for it
--   worker  claims, runs and settles jobs of every tenant
--   server  answers for one tenant at a time, named by a transaction-local setting
--   tenant  for logins of teams that enqueue and read by SQL
DO $$
DECLARE
  suffix text;
BEGIN
  FOREACH suffix IN ARRAY ARRAY['owner', 'worker', 'server', 'tenant'] LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{role}_' || suffix) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', '{role}_' || suffix);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL; -- another installation of the same name was quicker
      END;
    END IF;
    -- A superuser may become any role already; everybody else needs the membership.
    IF NOT pg_has_role(current_user, '{role}_' || suffix, 'USAGE') THEN
      EXECUTE format('GRANT %I TO %I', '{role}_' || suffix, current_user);
    END IF;
  END LOOP;
END
$$;
