--
-- Rows that a query would throw away after streamfilter_seen() has remembered them: an error when it is planned, or when it runs
--
\set VERBOSITY terse
CREATE TABLE staged (id int PRIMARY KEY, url text);
INSERT INTO staged SELECT i, '/' || i FROM generate_series(1, 100) AS i;
CREATE TABLE known (id int PRIMARY KEY);
INSERT INTO known SELECT generate_series(1, 10);
CREATE TABLE t (LIKE staged);
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '20000', fpr '1e-6');
CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
ANALYZE staged, known;
-- Plans that do not depend on costs.
SET enable_hashagg = off; SET enable_bitmapscan = off;
CREATE FUNCTION remembered() RETURNS bigint LANGUAGE sql AS
  $$SELECT count(*) FROM generate_series(-100, 20000) i WHERE streamfilter_test('seen', i)$$;

\set VERBOSITY default
-- Five rows of a hundred; the others would be remembered, too.
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url DESC LIMIT 5;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT count(*) AS stored, remembered() FROM t;
-- What the hint says loses none.
WITH new AS MATERIALIZED (SELECT * FROM staged ORDER BY url DESC LIMIT 5)
INSERT INTO t SELECT * FROM new WHERE NOT streamfilter_seen('seen', id);
SELECT count(*) AS stored, remembered() FROM t;
TRUNCATE seen;
SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', id);
WITH new AS MATERIALIZED (SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id)),
  stored AS (INSERT INTO t SELECT * FROM new)
SELECT count(*) FROM new;
TRUNCATE seen;
-- After a lock, in a view that is stored, held over COMMIT.
UPDATE staged SET url = '' WHERE NOT streamfilter_seen('seen', id);
DECLARE c CURSOR WITH HOLD FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
CREATE MATERIALIZED VIEW stored AS SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
CREATE FUNCTION is_new(int) RETURNS bool LANGUAGE plpgsql COST 1 AS 'BEGIN RETURN NOT streamfilter_seen(''seen'', $1); END';
SELECT id FROM staged WHERE is_new(id) ORDER BY url LIMIT 3;
MERGE INTO t USING (SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id)) s ON t.id = s.id
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.url);
SELECT id FROM staged WHERE CASE WHEN NOT streamfilter_seen('seen', id) THEN id > 50 END;
INSERT INTO known SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ON CONFLICT DO NOTHING;

-- The setting.
SET streamfilter.lost_rows = warn;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url DESC LIMIT 1;
\set VERBOSITY terse
-- Once for a plan.
PREPARE first AS SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id - 100) ORDER BY url LIMIT 1;
EXECUTE first;
EXECUTE first;
RESET streamfilter.lost_rows;
EXECUTE first;
DEALLOCATE first;
SET streamfilter.lost_rows = warn;
DO $$
BEGIN
  FOR i IN 1 .. 3 LOOP PERFORM count(*) FROM staged WHERE NOT streamfilter_seen('seen', 2300 + id); END LOOP;
END $$;
DELETE FROM known WHERE NOT streamfilter_seen('seen', id);
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) FOR UPDATE;
-- Shown among those that shape a plan, in an order that differs by version.
DO $$
DECLARE line text;
BEGIN
  FOR line IN EXPLAIN (SETTINGS, COSTS OFF) SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url LIMIT 1
  LOOP
    IF line LIKE '%Settings:%' THEN RAISE NOTICE '%', substring(line, 'streamfilter.lost_rows = ''\w+'''); END IF;
  END LOOP;
END $$;
RESET streamfilter.lost_rows;
TRUNCATE seen;

-- Refused, with the plan node that reads ahead and without it.
SET streamfilter.batch_scan = off;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url DESC LIMIT 1;
RESET streamfilter.batch_scan;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) OFFSET 99;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY id FETCH FIRST 5 ROWS WITH TIES;
SELECT DISTINCT id % 2 AS odd FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY 1;
SELECT id % 2 AS odd FROM staged WHERE NOT streamfilter_seen('seen', id) GROUP BY 1 ORDER BY 1;
SELECT DISTINCT ON (id % 2) id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY id % 2, id;
SELECT max(id) FROM staged WHERE NOT streamfilter_seen('seen', id);
SELECT count(*) FILTER (WHERE NOT streamfilter_seen('seen', id)) FROM staged;
SELECT sum(CASE WHEN streamfilter_seen('seen', id) THEN 0 ELSE 1 END) FROM staged;
SELECT count(*) FROM staged JOIN known USING (id) WHERE NOT streamfilter_seen('seen', staged.id);
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) AND id IN (SELECT id + 7 FROM known) ORDER BY id LIMIT 2;
SELECT id FROM staged s WHERE NOT streamfilter_seen('seen', id) AND NOT EXISTS (SELECT FROM known k WHERE k.id > s.id / 10);
SELECT id FROM known k WHERE NOT EXISTS (SELECT FROM staged s WHERE NOT streamfilter_seen('seen', k.id + s.id));
SELECT s.id FROM known LEFT JOIN (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id)) s USING (id) ORDER BY 1 LIMIT 1;
SELECT count(*) FROM (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) UNION SELECT id FROM known) u;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) INTERSECT SELECT 0;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) EXCEPT SELECT id FROM staged;
SELECT unnest(ARRAY(SELECT 1 WHERE id > 5)) FROM staged WHERE NOT streamfilter_seen('seen', id);
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY id % 2 ORDER BY id) AS n FROM staged
  WHERE NOT streamfilter_seen('seen', id)) s WHERE n = 1 ORDER BY id;
SELECT id FROM (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) OFFSET 0) s WHERE id = 1;
SELECT id FROM (SELECT id, streamfilter_seen('seen', id) AS repeat FROM staged) s WHERE NOT repeat ORDER BY id LIMIT 1;
SELECT id FROM (SELECT id, streamfilter_seen('seen', id) AS repeat FROM staged OFFSET 0) s WHERE NOT repeat AND id > 50;
SELECT id, repeat FROM (SELECT id, streamfilter_seen('seen', id) AS repeat FROM staged OFFSET 0) s WHERE id > 50;
SELECT count(*) FROM (SELECT id, streamfilter_seen('seen', id) AS repeat FROM staged OFFSET 0) s WHERE NOT repeat;
SELECT EXISTS (SELECT FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY id) AS any_new;
SELECT id FROM known WHERE (SELECT s.id FROM staged s WHERE s.id = known.id AND NOT streamfilter_seen('seen', s.id)) IS NULL;
SELECT id FROM known WHERE id <> ALL (ARRAY(SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id)));
SELECT id FROM known WHERE id = 10 + (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) LIMIT 1);
WITH new AS MATERIALIZED (SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id)) SELECT id FROM new ORDER BY id LIMIT 1;
WITH new AS MATERIALIZED (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id))
SELECT id FROM new WHERE id = 100 UNION ALL (SELECT id FROM new LIMIT 0);
SELECT id FROM staged WHERE (NOT streamfilter_seen('seen', id) AND id > 50) IS TRUE;
SELECT id FROM staged WHERE (NOT streamfilter_seen('seen', id) AND id > 50) OR id = 1;
SELECT id FROM staged WHERE coalesce(NOT streamfilter_seen('seen', id) AND id > 50, false);
SELECT id FROM staged WHERE streamfilter_seen('seen', id) IS FALSE AND streamfilter_seen('other', id) IS FALSE;
SELECT count(id) = 0 AS none FROM t WHERE NOT streamfilter_seen('other', id) AND NOT streamfilter_seen('seen', id);
MERGE INTO t USING staged s ON t.id = s.id
  WHEN NOT MATCHED AND NOT streamfilter_seen('seen', s.id) AND s.id > 50 THEN INSERT VALUES (s.id, s.url);
INSERT INTO known SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id)
  ON CONFLICT (id) DO UPDATE SET id = excluded.id WHERE known.id > 5;
-- Where a row may be looked at again after a lock.
UPDATE staged SET url = '' WHERE id = 1 AND NOT streamfilter_seen('seen', id);
UPDATE staged SET url = streamfilter_seen('seen', id)::text;
DELETE FROM staged WHERE NOT streamfilter_seen('seen', id);
DELETE FROM known USING staged s WHERE s.id = known.id AND NOT streamfilter_seen('seen', s.id);
WITH gone AS (DELETE FROM staged WHERE NOT streamfilter_seen('seen', id) RETURNING *) INSERT INTO t SELECT * FROM gone;
MERGE INTO t USING staged s ON t.id = s.id WHEN MATCHED AND NOT streamfilter_seen('seen', s.id) THEN DELETE;
MERGE INTO t USING staged s ON t.id = s.id WHEN MATCHED THEN UPDATE SET url = streamfilter_seen('seen', s.id)::text;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) FOR KEY SHARE;
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) FOR SHARE;
UPDATE staged SET url = '' WHERE is_new(id);
-- In a view, with row security, by COPY.
CREATE VIEW new_staged AS SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id);
SELECT id FROM new_staged ORDER BY url LIMIT 1;
COPY (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url LIMIT 1) TO stdout;
SET plan_cache_mode = force_generic_plan;
PREPARE first(regclass) AS SELECT id FROM staged WHERE NOT streamfilter_seen($1, id) ORDER BY url LIMIT 1;
EXECUTE first('seen');
DEALLOCATE first;
RESET plan_cache_mode;
\getenv folder PG_ABS_SRCDIR
\set ways :folder '/sql/shared/ways.sql'
\set ECHO none
\i :ways
\set ECHO all
SELECT explain_analyze($x$SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', id)$x$);
SELECT explain_analyze($x$SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id)$x$);

-- Functions that ask.
CREATE FUNCTION new_rows() RETURNS SETOF int LANGUAGE sql AS $$SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id)$$;
CREATE FUNCTION new_rows_pl() RETURNS SETOF int LANGUAGE plpgsql AS
  $$BEGIN RETURN QUERY SELECT id FROM public.staged WHERE NOT public.streamfilter_seen('public.seen', id); END$$;
SELECT * FROM new_rows() LIMIT 5;
SELECT * FROM new_rows() r WHERE r > 50;
SELECT k.id FROM known k JOIN new_rows_pl() n ON n = k.id;
SELECT count(*) FROM new_rows_pl();
SELECT new_rows_pl() LIMIT 5;
SELECT id FROM staged JOIN known USING (id) WHERE is_new(staged.id);
SELECT id FROM staged WHERE is_new(id) AND is_new(id + 1);
SELECT id FROM (SELECT id, is_new(id) AS new FROM staged OFFSET 0) s WHERE new AND id > 50;
SELECT explain_analyze('SELECT * FROM new_rows_pl()');
CREATE TABLE strict (id int CHECK (is_new(id)), part int UNIQUE);
INSERT INTO strict SELECT id, id % 10 FROM staged ON CONFLICT DO NOTHING;
-- A CHECK is evaluated whatever becomes of the row.
CREATE TABLE asks (id int CHECK (NOT streamfilter_seen('seen', id)));
ALTER TABLE t ADD CHECK (NOT streamfilter_seen('seen', id));
CREATE DOMAIN asks AS int CHECK (NOT streamfilter_seen('seen', VALUE));
CREATE DOMAIN unseen AS int CHECK (is_new(VALUE));
SELECT id::unseen FROM staged ORDER BY url LIMIT 2;
-- A query that is left before its end, after it has asked about all rows.
CREATE FUNCTION first_new() RETURNS int LANGUAGE sql AS $$SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url$$;
SELECT first_new();
DO $$
DECLARE first int;
BEGIN SELECT id INTO first FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url DESC; END $$;
CREATE FUNCTION leave_loop(most int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN FOR r IN SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) AND id <= most LOOP EXIT WHEN r.id = 3; END LOOP; END $$;
SELECT leave_loop(100);
SELECT leave_loop(4);
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url;
FETCH 2 FROM c;
CLOSE c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url;
FETCH 2 FROM c;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM new_rows_pl();
FETCH 2 FROM c;
COMMIT;
-- A savepoint catches the error, or an error ends the cursor: COMMIT fails.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url;
FETCH 2 FROM c;
SAVEPOINT s;
CLOSE c;
ROLLBACK TO s;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url;
SAVEPOINT s;
FETCH 2 FROM c;
RELEASE s;
SAVEPOINT s;
MOVE 1 IN c;
ROLLBACK TO s;
PREPARE TRANSACTION 'left';
-- What a query that also changes tables gives is kept, and thrown away.
DO $$
DECLARE r record;
BEGIN
  FOR r IN WITH x AS (INSERT INTO known VALUES (0)) SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) LOOP EXIT WHEN r.id = 5; END LOOP;
END $$;
-- PL/pgSQL reads all rows, and keeps one or none.
DO $$DECLARE first int; BEGIN EXECUTE 'SELECT id FROM staged WHERE NOT streamfilter_seen(''seen'', id)' INTO first; END$$;
DO $$BEGIN PERFORM id FROM staged WHERE NOT streamfilter_seen('seen', id); END$$;
DO $$BEGIN PERFORM * FROM new_rows_pl(); END$$;
DO $$DECLARE first int; BEGIN EXECUTE 'WITH n AS MATERIALIZED (SELECT id FROM staged WHERE NOT streamfilter_seen(''seen'', id)) SELECT id FROM n WHERE id > 50 UNION ALL SELECT id FROM n' INTO first; END$$;
DO $$BEGIN PERFORM FROM staged WHERE id = 5 AND NOT streamfilter_seen('seen', id); END$$;
DO $$BEGIN PERFORM FROM staged WHERE id = 5 AND is_new(id); END$$;
DO $$BEGIN PERFORM WHERE NOT streamfilter_seen('seen', 0); RAISE NOTICE 'new: %', FOUND; END$$;
-- A query that asks itself, and through a function.
SELECT id FROM staged WHERE is_new(id) AND NOT streamfilter_seen('seen', id);
SELECT id FROM staged WHERE is_new(id + 1000) AND NOT streamfilter_seen('seen', id);
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) AND is_new(id + 1000);
SELECT id, is_new(id + 1000) FROM (SELECT id, streamfilter_seen('seen', id) AS r FROM staged OFFSET 0) v WHERE NOT r LIMIT 1;
SELECT count(*) FROM (SELECT streamfilter_seen('seen', id) AS r, is_new(id) AS s FROM staged OFFSET 0) v WHERE NOT r OR s;
TRUNCATE seen;
PREPARE all_new AS SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
EXPLAIN (ANALYZE, COSTS OFF) EXECUTE all_new;
EXPLAIN (ANALYZE, COSTS OFF) DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
DEALLOCATE all_new;
-- What stands above the question.
WITH new AS MATERIALIZED (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id)),
  stored AS (INSERT INTO t SELECT id FROM new WHERE current_setting('work_mem') = 'none')
SELECT count(*) FROM new;
SELECT 1 WHERE NOT streamfilter_seen('seen', 1) UNION ALL SELECT 2 WHERE NOT streamfilter_seen('seen', 2) ORDER BY 1 LIMIT 1;
SELECT 1 WHERE NOT streamfilter_seen('seen', 1) OFFSET 1;
SELECT id FROM staged WHERE NOT EXISTS (SELECT 1 WHERE streamfilter_seen('seen', id)) AND id > 50;
SELECT id % 10 AS digit FROM staged GROUP BY 1 HAVING bool_or(NOT streamfilter_seen('seen', id));
SELECT id FROM (SELECT id, bool_and(streamfilter_seen('seen', id)) AS repeat FROM staged GROUP BY id) s WHERE NOT repeat AND id < 11;
WITH added AS (INSERT INTO t SELECT id FROM staged RETURNING id, streamfilter_seen('seen', id) AS repeat) SELECT id FROM added WHERE NOT repeat LIMIT 2;
WITH v AS MATERIALIZED (SELECT id, streamfilter_seen('seen', id) AS repeat FROM staged),
  stored AS (INSERT INTO t SELECT id FROM v WHERE NOT repeat AND id > 50)
SELECT count(*) FILTER (WHERE NOT repeat) FROM v;
MERGE INTO t USING staged s ON t.id = s.id WHEN NOT MATCHED AND NOT streamfilter_seen('seen', s.id) THEN DO NOTHING
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.url);
-- A trigger of the target drops rows.
CREATE TABLE odd (id int);
CREATE FUNCTION drop_even() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF NEW.id % 2 = 0 THEN RETURN NULL; END IF; RETURN NEW; END$$;
CREATE TRIGGER drop_even BEFORE INSERT ON odd FOR EACH ROW EXECUTE FUNCTION drop_even();
INSERT INTO odd SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
INSERT INTO odd SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) AND id = 100;
INSERT INTO odd SELECT id FROM staged WHERE is_new(id);
WITH new AS MATERIALIZED (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id)), stored AS (INSERT INTO odd SELECT id FROM new RETURNING id)
SELECT count(*) FROM stored;
-- A function may be declared wrongly.
CREATE FUNCTION asks_anywhere(int) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN NOT streamfilter_seen(''seen'', $1); END';
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT id FROM staged WHERE asks_anywhere(id);
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;
-- Rows that a cursor passes over.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
MOVE 2 IN c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
FETCH 2 FROM c;
FETCH RELATIVE 3 FROM c;
ROLLBACK;
-- Held over COMMIT.
CREATE PROCEDURE load() LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) LOOP INSERT INTO t VALUES (r.id); COMMIT; END LOOP;
END $$;
CALL load();
CREATE PROCEDURE load_by_function() LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT new FROM new_rows_pl() AS new LOOP INSERT INTO t VALUES (r.new); COMMIT; END LOOP;
END $$;
CALL load_by_function();
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT * FROM new_rows_pl();
COMMIT;
-- Materialized views.
CREATE MATERIALIZED VIEW stored AS SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
CREATE MATERIALIZED VIEW stored AS SELECT * FROM new_rows_pl();
CREATE MATERIALIZED VIEW stored AS SELECT id FROM new_staged WITH NO DATA;
REFRESH MATERIALIZED VIEW stored;
DROP MATERIALIZED VIEW IF EXISTS stored;
EXPLAIN ANALYZE CREATE MATERIALIZED VIEW stored AS SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
-- Nothing of all that is remembered.
SELECT remembered();

-- What loses no row: everything is stored or given out, or nothing is judged but what is asked for.
CREATE FUNCTION given(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE rows bigint;
BEGIN
  TRUNCATE seen;
  EXECUTE 'CREATE TEMPORARY TABLE given AS ' || query;
  SELECT count(*) INTO rows FROM given;
  DROP TABLE given;
  RETURN rows || ' given, ' || remembered() || ' remembered';
END $$;
SELECT given($x$SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id)$x$);
SELECT given($x$SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url DESC$x$);
SELECT given($x$SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) LIMIT 2$x$);
SELECT given($x$SELECT * FROM staged WHERE id > 50 AND NOT streamfilter_seen('seen', id)$x$);
SELECT given($x$SELECT * FROM staged WHERE streamfilter_seen('seen', id) IS NOT TRUE$x$);
SELECT given($x$SELECT * FROM staged WHERE id < 51 OR NOT streamfilter_seen('seen', id)$x$);
SELECT given($x$SELECT * FROM staged WHERE (id > 50 AND NOT streamfilter_seen('seen', id)) OR id = 1000$x$);
SELECT given($x$SELECT id FROM (SELECT id, streamfilter_seen('seen', id) AS repeat FROM staged OFFSET 0) s WHERE NOT repeat$x$);
SELECT given($x$SELECT s.id, k.id AS other FROM (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id)) s LEFT JOIN known k USING (id)$x$);
SELECT given($x$SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) UNION ALL SELECT id + 1000 FROM known WHERE NOT streamfilter_seen('seen', id + 1000)$x$);
SELECT given($x$WITH new AS MATERIALIZED (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id)) SELECT * FROM new LIMIT 4$x$);
SELECT given($x$WITH locked AS MATERIALIZED (SELECT id FROM staged WHERE id < 6 FOR UPDATE)
  SELECT id FROM locked WHERE NOT streamfilter_seen('seen', id)$x$);
SELECT given($x$SELECT * FROM new_rows_pl()$x$);
SELECT given($x$SELECT id FROM staged WHERE id > 50 AND is_new(id)$x$);
SELECT given($x$SELECT id FROM staged WHERE is_new(id) LIMIT 3$x$);
TRUNCATE seen, t;
CREATE TABLE copy AS SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 100 + id) ORDER BY id DESC;
SELECT id FROM known LEFT JOIN staged USING (id) WHERE NOT streamfilter_seen('seen', 300 + known.id) AND known.id < 3;
INSERT INTO t SELECT s.id, k.id FROM staged s JOIN known k USING (id) WHERE NOT streamfilter_seen('seen', 400 + s.id + k.id);
WITH added AS (INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 700 + id) RETURNING id)
SELECT count(*) FROM added;
WITH locked AS MATERIALIZED (SELECT id FROM known WHERE id < 4 FOR UPDATE),
  new AS MATERIALIZED (SELECT id FROM locked WHERE NOT streamfilter_seen('seen', 600 + id)),
  taken AS (UPDATE staged SET url = 'taken' FROM new WHERE staged.id = new.id)
SELECT id FROM new;
MERGE INTO t USING staged s ON t.id = 10000 + s.id
  WHEN NOT MATCHED AND NOT streamfilter_seen('seen', 800 + s.id) THEN INSERT VALUES (10000 + s.id)
  WHEN MATCHED THEN UPDATE SET url = 'matched';
INSERT INTO known SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 900 + id) ON CONFLICT (id) DO UPDATE SET id = excluded.id;
UPDATE staged SET url = '' WHERE id = 1 RETURNING streamfilter_seen('seen', 1000 + id);
INSERT INTO t SELECT 5 WHERE NOT streamfilter_seen('seen', 5000) LIMIT 1;
SELECT EXISTS (SELECT WHERE NOT streamfilter_seen('seen', 5001)) AS new;
-- Functions that store what they ask about; aggregates that have all rows; what LATERAL finds for each row.
TRUNCATE seen, t;
CREATE FUNCTION store_new(int) RETURNS bool LANGUAGE plpgsql AS
  $$BEGIN IF streamfilter_seen('seen', $1) THEN RETURN false; END IF; INSERT INTO t VALUES ($1); RETURN true; END$$;
SELECT count(*) FROM staged WHERE store_new(id);
SELECT count(*) FROM staged WHERE store_new(id);
SELECT length(json_agg(id)::text) FROM staged WHERE NOT streamfilter_seen('seen', 1000 + id);
INSERT INTO t SELECT unnest(array_agg(id)) FROM staged WHERE NOT streamfilter_seen('seen', 2000 + id);
INSERT INTO t SELECT u.id FROM known k, unnest(ARRAY[k.id, k.id + 10]) AS u(id) WHERE NOT streamfilter_seen('seen', 3000 + u.id);
WITH v AS MATERIALIZED (SELECT id, streamfilter_seen('seen', 4000 + id) AS repeat FROM staged),
  stored AS (INSERT INTO t SELECT id FROM v WHERE NOT repeat)
SELECT count(*) FILTER (WHERE NOT repeat) FROM v;
MERGE INTO t USING staged s ON t.id = 20000 + s.id
  WHEN NOT MATCHED AND streamfilter_seen('seen', 5000 + s.id) THEN DO NOTHING WHEN NOT MATCHED THEN INSERT VALUES (20000 + s.id);
SELECT count(*), remembered() FROM t;
INSERT INTO odd SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 6000 + id) AND id % 2 = 1;
WITH new AS MATERIALIZED (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 7000 + id) AND id % 2 = 1), stored AS (INSERT INTO odd SELECT id FROM new)
INSERT INTO t SELECT id FROM new WHERE id = 1;
CREATE TABLE counted (id int PRIMARY KEY);
CREATE FUNCTION count_new() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM streamfilter_seen('seen', 8000 + NEW.id); RETURN NULL; END$$;
CREATE TRIGGER count_new AFTER INSERT ON counted FOR EACH ROW EXECUTE FUNCTION count_new();
INSERT INTO counted SELECT id FROM staged ON CONFLICT DO NOTHING;
DO $$DECLARE fresh bool; BEGIN EXECUTE 'SELECT NOT streamfilter_seen(''seen'', 7)' INTO fresh; PERFORM streamfilter_seen('seen', id) FROM staged; END$$;
-- A sorted cursor whose questions were rolled back, and one whose place is used.
TRUNCATE seen;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY url;
SAVEPOINT s;
FETCH 2 FROM c;
ROLLBACK TO s;
CLOSE c;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) AND id > 10;
FETCH 2 FROM c;
UPDATE staged SET url = 'changed' WHERE CURRENT OF c RETURNING *;
ROLLBACK;
SELECT remembered();
-- Repeats, verdicts, looking.
SELECT count(*) FROM staged WHERE streamfilter_seen('seen', 6000 + id);
SELECT count(streamfilter_seen('seen', 7000 + id)) FROM staged;
SELECT repeat, count(*) FROM (SELECT streamfilter_seen('seen', 8000 + id) AS repeat FROM staged) s GROUP BY 1;
SELECT count(*) FROM staged WHERE NOT streamfilter_test('seen', 9000 + id);
SELECT id, streamfilter_seen('seen', 9000 + id) FROM staged ORDER BY id DESC LIMIT 1;
-- EXPLAIN remembers nothing.
EXPLAIN (COSTS OFF) SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 10000 + id) ORDER BY url LIMIT 1;
EXPLAIN (ANALYZE false, COSTS OFF) SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', 10000 + id);
SET streamfilter.batch_insert = on;
SELECT explain_analyze($x$INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 11000 + id)$x$);
RESET streamfilter.batch_insert;
SELECT explain_analyze($x$CREATE TABLE other_copy AS SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 12000 + id)$x$);

-- What all this rests on: how this version of the server executes a query. Cursors and loops that are read row by row, or to their end.
TRUNCATE seen;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id);
FETCH 5 FROM c;
COMMIT;
SELECT remembered() = 5 AS "five were asked about";
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 1000 + id) AND id < 4 ORDER BY url;
FETCH 5 FROM c;
COMMIT;
CREATE FUNCTION read_loops() RETURNS void LANGUAGE plpgsql AS $$
DECLARE r record; c CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 2000 + id);
BEGIN
  FOR r IN SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 3000 + id) LOOP NULL; END LOOP;
  FOR r IN SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 4000 + id) AND id < 11 LOOP NULL; END LOOP;
  FOR r IN SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 4100 + id) AND id < 5 LOOP NULL; END LOOP;
  OPEN c;
  FETCH c INTO r;
  CLOSE c;
  SELECT id INTO r FROM staged WHERE NOT streamfilter_seen('seen', 5000 + id);
END $$;
SELECT read_loops();
SELECT remembered() = 124 AS "none was asked about for nobody";
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 6000 + id);
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;

DROP VIEW new_staged;
DROP TABLE staged, known, t, copy, other_copy, strict, odd, counted;
DROP DOMAIN unseen;
DROP FOREIGN TABLE seen, other;
DROP FUNCTION explain_analyze, compare, way_of, remembered, given, is_new, new_rows, new_rows_pl, first_new, leave_loop, read_loops, drop_even, asks_anywhere, store_new, count_new;
DROP PROCEDURE load, load_by_function;
