-- Rows of a query go into a filter many at a time, with the result of one after the other.
CREATE SCHEMA insert_keys;
SET search_path = insert_keys, public;
SET streamfilter.batch_insert = on;  -- whatever the server is set to

CREATE FUNCTION explain_analyze(statement text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) ' || statement LOOP
    CONTINUE WHEN line ~ '^ *(Buffers|Storage|Memory|Fill|Kind|Planning|Execution|I/O Timings|WAL)';
    RETURN NEXT regexp_replace(line, 'rows=(\d+)\.00', 'rows=\1');
  END LOOP;
END $$;

-- The number of rows that a statement says it has inserted.
CREATE FUNCTION inserted(statement text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE n bigint;
BEGIN
  EXECUTE statement;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

CREATE TABLE source AS
SELECT i AS id, CASE WHEN i % 100 = 0 THEN NULL ELSE i * 7919 % 1500 END AS key, 'user ' || i * 31 % 700 AS name,
       timestamptz '2020-01-01' + i * interval '1 second' AS at
FROM generate_series(1, 3000) i;

-- ---- in batches, and row by row -------------------------------------------------------------------
CREATE FOREIGN TABLE seen (key bigint) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '0.0001', seed '1');
SELECT explain_analyze('INSERT INTO seen SELECT key FROM source');
SELECT tested, accepted, discarded FROM streamfilter_stats WHERE filter = 'seen'::regclass;
TRUNCATE seen;
SET streamfilter.batch_insert = off;
SELECT explain_analyze('INSERT INTO seen SELECT key FROM source');
SET streamfilter.batch_insert = on;
-- Text, more columns, casts, roles.
CREATE FOREIGN TABLE named (name text COLLATE "C") SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '0.0001', seed '1');
CREATE FOREIGN TABLE pairs (key bigint, name text) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '7', seed '1');
CREATE FOREIGN TABLE windowed (key bigint, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '64kB', fpr '0.0001', seed '1', "window" '1 hour');
DO $$
DECLARE statement text; batched bigint; single bigint; target text;
BEGIN
  FOREACH statement IN ARRAY '{
    "INSERT INTO named SELECT name FROM source",
    "INSERT INTO pairs SELECT key % 3, name FROM source",
    "INSERT INTO windowed SELECT key, at FROM source ORDER BY id",
    "INSERT INTO seen SELECT key::int FROM source",
    "INSERT INTO seen SELECT max(key) FROM source GROUP BY name",
    "INSERT INTO seen VALUES (1), (2), (1), (NULL)",
    "INSERT INTO seen SELECT a.key FROM source a JOIN source b USING (key)",
    "INSERT INTO seen SELECT key FROM source UNION ALL SELECT key + 1 FROM source",
    "INSERT INTO seen SELECT key FROM source WHERE false"}'::text[] LOOP
    target := split_part(statement, ' ', 3);
    EXECUTE 'TRUNCATE ' || target;
    SET LOCAL streamfilter.batch_insert = on;
    batched := inserted(statement);
    EXECUTE 'TRUNCATE ' || target;
    SET LOCAL streamfilter.batch_insert = off;
    single := inserted(statement);
    RAISE NOTICE '%: % and %', statement, batched, single;
  END LOOP;
END $$;

-- ---- what looks at single rows --------------------------------------------------------------------
TRUNCATE seen;
INSERT INTO seen SELECT key FROM source WHERE id <= 3 RETURNING key;
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE NOTICE '% %: %', TG_WHEN, TG_LEVEL, NEW; RETURN NEW; END $$;
PREPARE load AS INSERT INTO seen SELECT key FROM source WHERE id <= 4;
EXPLAIN (COSTS off) EXECUTE load;
CREATE TRIGGER after_row AFTER INSERT ON seen FOR EACH ROW EXECUTE FUNCTION watch();
EXPLAIN (VERBOSE, COSTS off) EXECUTE load;
EXECUTE load;
DROP TRIGGER after_row ON seen;
CREATE TRIGGER before_statement BEFORE INSERT ON seen EXECUTE FUNCTION watch();
EXECUTE load;
DROP TRIGGER before_statement ON seen;
-- The query asks the filter, or another one.
TRUNCATE seen;
SELECT inserted('INSERT INTO seen SELECT key FROM source s WHERE NOT EXISTS (SELECT FROM seen WHERE seen.key = s.key)');
SELECT explain_analyze($$INSERT INTO seen SELECT id FROM source WHERE NOT streamfilter_seen('named', name)$$);
-- Through a view, a rule, and another part of the statement.
CREATE VIEW small AS SELECT key FROM seen WHERE key < 10 WITH CHECK OPTION;
TRUNCATE seen;
SELECT inserted('INSERT INTO small SELECT key FROM source WHERE key < 5');
INSERT INTO small SELECT key FROM source WHERE key < 20;
CREATE TABLE passing (key bigint);
CREATE RULE remember AS ON INSERT TO passing DO ALSO INSERT INTO seen SELECT NEW.key;
TRUNCATE seen;
INSERT INTO passing SELECT id FROM source;
SELECT count(*) FILTER (WHERE streamfilter_test('seen', id)) AS there FROM source;
TRUNCATE seen;
WITH loaded AS (INSERT INTO seen SELECT key FROM source) SELECT 1 AS one;
SELECT count(*) FILTER (WHERE streamfilter_test('seen', key)) = count(key) AS all_there FROM source;

-- ---- errors ---------------------------------------------------------------------------------------
TRUNCATE seen;
INSERT INTO seen SELECT 1 / (key - 7) FROM source WHERE key > 0 ORDER BY key DESC;
SELECT bool_or(streamfilter_test('seen', key)) AS any_there FROM source WHERE key IS NOT NULL;
BEGIN;
SAVEPOINT undone;
INSERT INTO seen SELECT key FROM source WHERE key < 100;
ROLLBACK TO undone;
INSERT INTO seen SELECT key FROM source WHERE key > 1400;
COMMIT;
SELECT bool_or(streamfilter_test('seen', key)) FILTER (WHERE key < 100) AS undone,
       bool_and(streamfilter_test('seen', key)) FILTER (WHERE key > 1400) AS done FROM source;

SET client_min_messages = warning;
DROP SCHEMA insert_keys CASCADE;
