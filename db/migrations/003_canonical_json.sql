-- The SQL twin of src/core/hash.ts and src/core/json.ts: a caller that enqueues with SQL gets the same
-- spec_hash and the same refusals as one that uses TypeScript. The three functions others call
-- (canonical_json, spec_hash, check_payload) pin the settings their work depends on; the helpers rely on that,
-- because pinning again at every value would cost more than the value. Backslashes stand in E'' strings only:
-- a function's body is parsed under the session's standard_conforming_strings.

-- RFC 8785 prints numbers as ECMAScript does: the fewest digits that read back as the same double.
-- Called under extra_float_digits = 1 (see canonical_json), where float8 prints its shortest form.
CREATE FUNCTION {schema}.canonical_number(n numeric) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  v        float8 := abs(n)::float8;
  sign     text := CASE WHEN n < 0 THEN '-' ELSE '' END;
  mantissa text := split_part(v::text, 'e', 1);
  exponent int := coalesce(nullif(split_part(v::text, 'e', 2), '')::int, 0);
  digits   text := replace(mantissa, '.', '');
  point    int := length(split_part(mantissa, '.', 1)) + exponent;  -- the value is 0.digits * 10^point
  size     int;
  short    bigint;
BEGIN
  IF v = 0 THEN
    RETURN '0';
  END IF;
  point := point - (length(digits) - length(ltrim(digits, '0')));
  digits := trim(digits, '0');
  -- Postgres passes over shorter digits that lie exactly half-way to the next double (1e23), ECMAScript takes
  -- them. They lie next to the digits we have, and only here: such a half is d * 10^q with 5^q below 2^54.
  IF v > 9007199254740992 AND v < 1e41 THEN
    <<shorter>>
    FOR kept IN 1 .. length(digits) - 1 LOOP
      FOREACH short IN ARRAY ARRAY[left(digits, kept)::bigint, left(digits, kept)::bigint + 1] LOOP
        IF (short || 'e' || (point - kept))::float8 = v THEN
          point := point + length(short::text) - kept;
          digits := rtrim(short::text, '0');
          EXIT shorter;
        END IF;
      END LOOP;
    END LOOP;
  END IF;
  size := length(digits);
  RETURN sign || CASE
    WHEN point BETWEEN size AND 21 THEN digits || repeat('0', point - size)
    WHEN point BETWEEN 1 AND 21 THEN left(digits, point) || '.' || substr(digits, point + 1)
    WHEN point BETWEEN -5 AND 0 THEN '0.' || repeat('0', -point) || digits
    ELSE left(digits, 1) || CASE WHEN size > 1 THEN '.' || substr(digits, 2) ELSE '' END
      || 'e' || CASE WHEN point > 0 THEN '+' ELSE '-' END || abs(point - 1)
  END;
END
$$;

-- RFC 8785 sorts keys by UTF-16 code units. That is code point order but for the characters past U+FFFF,
-- whose surrogates come before U+E000: so U+E000..U+FFFF are lifted behind U+10FFFF. Compare with COLLATE "C".
CREATE FUNCTION {schema}.canonical_key_order(key text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN octet_length(key) = length(key) THEN key
    ELSE regexp_replace(
      replace(key, chr(1114111), chr(1114111) || chr(1)) COLLATE "C",
      E'([\\uE000-\\uFFFF])', chr(1114111) || E'\\1', 'g')
  END
$$;

-- One value inside canonical_json, called under its settings. jsonb already escapes strings as RFC 8785
-- wants, so an array without objects in it is its own text less the spaces, unless a number in it needs
-- printing anew (the pattern errs on that side); only the rest is taken apart.
CREATE FUNCTION {schema}.canonical_part(value jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  kind  text := jsonb_typeof(value);
  shown text;
BEGIN
  IF kind = 'object' THEN
    RETURN (
      SELECT '{' || coalesce(string_agg({schema}.canonical_member(m.key, m.value), ','
        ORDER BY {schema}.canonical_key_order(m.key) COLLATE "C"), '') || '}'
      FROM jsonb_each(value) AS m
    );
  END IF;
  shown := value::text COLLATE "C";
  IF kind = 'string' THEN
    RETURN shown;
  ELSIF strpos(shown, '{"') = 0
    AND shown !~ E'[0-9]{16}|[0-9.]{17}|\\.[0-9]*0([^0-9]|$)|0\\.000000' THEN
    RETURN CASE WHEN strpos(shown, '"') = 0 THEN replace(shown, ', ', ',')
      ELSE regexp_replace(shown, E'("(?:[^"\\\\]|\\\\.)*"|[^" ]+) ?', E'\\1', 'g') END;
  ELSIF kind = 'number' THEN
    RETURN {schema}.canonical_number(value::numeric);
  END IF;
  -- Objects are the usual elements: in this query they cost a third of a call each.
  RETURN (
    SELECT '[' || string_agg(
      CASE WHEN jsonb_typeof(item) = 'object' THEN (
        SELECT '{' || coalesce(string_agg({schema}.canonical_member(m.key, m.value), ','
          ORDER BY {schema}.canonical_key_order(m.key) COLLATE "C"), '') || '}'
        FROM jsonb_each(item) AS m
      ) ELSE {schema}.canonical_part(item) END,
      ',' ORDER BY place) || ']'
    FROM jsonb_array_elements(value) WITH ORDINALITY AS items(item, place)
  );
END
$$;

-- STABLE only because to_json is: the planner would not inline it otherwise.
CREATE FUNCTION {schema}.canonical_member(key text, value jsonb) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT to_json(key)::text || ':' || CASE WHEN jsonb_typeof(value) IN ('string', 'boolean', 'null')
    THEN value::text ELSE {schema}.canonical_part(value) END
$$;

-- The RFC 8785 text of a value. Raises 22003 for numbers outside the range of doubles: check_payload first.
CREATE FUNCTION {schema}.canonical_json(value jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET extra_float_digits = 1
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  RETURN {schema}.canonical_part(value);
END
$$;

CREATE FUNCTION {schema}.spec_hash(job_type text, input jsonb, handler_version text DEFAULT NULL) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT encode(sha256(convert_to({schema}.canonical_json(jsonb_build_object(
    'v', 1, 'job_type', job_type, 'input', input, 'handler_version', handler_version)), 'UTF8')), 'hex')
$$;

-- Why a number would not come back from a double as it was sent; NULL when it would. Decimals may round,
-- integers may not. The bounds lie within 1e-19 of where doubles round to infinity and to zero, on the side
-- that keeps the cast in canonical_number from raising.
CREATE FUNCTION {schema}.number_fault(n numeric) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN abs(n) >= 1.7976931348623158079e308 THEN 'is too large for a double'
    WHEN n <> 0 AND abs(n) <= 2.4703282292062327209e-324 THEN 'is so small that it would become 0'
    WHEN n = trunc(n) AND {schema}.canonical_number(n)::numeric <> n
      THEN 'would change to ' || {schema}.canonical_number(n)
  END
$$;

-- The path, as `$.items[3]["odd key"]`, of the first number equal to `wanted`, or without `wanted` of the
-- first container inside `level` others. Only for messages: it walks value by value.
CREATE FUNCTION {schema}.payload_path(input jsonb, wanted numeric, level integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  WITH RECURSIVE node(value, path, depth) AS (
    SELECT input, '$', 0
    UNION ALL
    SELECT child.value, node.path || child.step, node.depth + 1
    FROM node CROSS JOIN LATERAL (
      SELECT e.value, '[' || (e.place - 1) || ']' AS step
      FROM jsonb_array_elements(CASE jsonb_typeof(node.value) WHEN 'array' THEN node.value END)
        WITH ORDINALITY AS e(value, place)
      UNION ALL
      SELECT m.value, CASE WHEN m.key ~ '^[A-Za-z_$][A-Za-z0-9_$]*$' COLLATE "C" THEN '.' || m.key
        ELSE '[' || to_json(m.key)::text || ']' END
      FROM jsonb_each(CASE jsonb_typeof(node.value) WHEN 'object' THEN node.value END) AS m
    ) AS child
  )
  SELECT left(path, 500) FROM node
  WHERE value = to_jsonb(wanted)
    OR (wanted IS NULL AND depth = level AND jsonb_typeof(value) IN ('object', 'array'))
  LIMIT 1
$$;

-- Refuses what parseJsonText refuses, so far as jsonb lets it in: SQLSTATE 22023, a message that begins with
-- the error code, the path as DETAIL. The size that counts is the compact text's, as JSON.stringify prints it.
-- VOLATILE, so that the planner never drops a call made for its exception.
CREATE FUNCTION {schema}.check_payload(
  input jsonb, max_bytes integer DEFAULT 1048576, max_depth integer DEFAULT 64
) RETURNS void
LANGUAGE plpgsql PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET extra_float_digits = 1
AS $$
DECLARE
  shown text := input::text COLLATE "C";
  size  bigint := octet_length(shown);
  n     numeric;
  fault text;
BEGIN
  -- jsonb's own text is never shorter than the compact one, and less than 64 times as long even where numbers
  -- such as 5e-324 are printed with all their zeros: outside these bounds the exact size is not needed.
  IF (size > 64 * max_bytes::bigint) IS NOT TRUE THEN
    IF jsonb_path_exists(input, format('strict $.**{%s} ? (@.type() == "object" || @.type() == "array")',
        max_depth)::jsonpath) THEN
      RAISE EXCEPTION 'PAYLOAD_TOO_DEEP: the JSON is nested deeper than % containers; flatten it', max_depth
        USING ERRCODE = '22023', DETAIL = {schema}.payload_path(input, NULL, max_depth);
    END IF;
    -- A run of 16 digits is what every number worth a look has in jsonb's text.
    IF shown ~ '[0-9]{16}' THEN
      FOR n IN SELECT jsonb_path_query(input, 'strict $.** ? (@ > 9007199254740992 || @ < -9007199254740992
          || (@ > -1e-300 && @ < 1e-300 && @ != 0))')::numeric LOOP
        fault := {schema}.number_fault(n);
        IF fault IS NOT NULL THEN
          RAISE EXCEPTION 'PAYLOAD_REJECTED: the number % %; send it as a string',
            regexp_replace(n::text, '^(.{40}).+', E'\\1...'), fault
            USING ERRCODE = '22023', DETAIL = {schema}.payload_path(input, n, NULL);
        END IF;
      END LOOP;
    END IF;
    IF size > max_bytes THEN
      size := octet_length({schema}.canonical_json(input));
    END IF;
  END IF;
  IF size > max_bytes THEN
    RAISE EXCEPTION 'PAYLOAD_TOO_LARGE: the JSON is % bytes; the limit is %', size, max_bytes
      USING ERRCODE = '22023', DETAIL = '$',
        HINT = 'Keep large data elsewhere, for instance as an artifact, and send a reference to it.';
  END IF;
END
$$;
