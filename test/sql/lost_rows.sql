--
-- Rows that a query throws away after streamfilter_seen() has remembered them: a WARNING when it is planned
--
\set VERBOSITY terse
CREATE TABLE staged (id int, url text);
INSERT INTO staged SELECT i, '/' || i FROM generate_series(1, 100) AS i;
CREATE TABLE known (id int PRIMARY KEY);
INSERT INTO known SELECT generate_series(1, 10);
CREATE TABLE t (LIKE staged);
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
ANALYZE staged, known;

\set VERBOSITY default
-- Five rows of a hundred; the others are remembered.
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY id DESC LIMIT 5;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT count(*) AS stored, (SELECT count(*) FROM staged WHERE streamfilter_test('seen', id)) AS remembered FROM t;
-- What the hint says loses none.
TRUNCATE seen;
TRUNCATE t;
WITH new AS MATERIALIZED (SELECT * FROM staged ORDER BY id DESC LIMIT 5)
INSERT INTO t SELECT * FROM new WHERE NOT streamfilter_seen('seen', id);
SELECT count(*) AS stored, (SELECT count(*) FROM staged WHERE streamfilter_test('seen', id)) AS remembered FROM t;
SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', id);
TRUNCATE seen;
WITH new AS MATERIALIZED (SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id)),
  stored AS (INSERT INTO t SELECT * FROM new)
SELECT count(*) FROM new;

\set VERBOSITY terse
-- Warned of, with the plan node that reads ahead and without it.
SET streamfilter.batch_scan = off;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY id DESC LIMIT 1;
RESET streamfilter.batch_scan;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 100 + id) OFFSET 99;
SELECT DISTINCT id % 2 AS odd FROM staged WHERE NOT streamfilter_seen('seen', 200 + id) ORDER BY 1;
SELECT id % 2 AS odd FROM staged WHERE NOT streamfilter_seen('seen', 300 + id) GROUP BY 1 ORDER BY 1;
SELECT DISTINCT ON (id % 2) id FROM staged WHERE NOT streamfilter_seen('seen', 400 + id) ORDER BY id % 2, id;
SELECT max(id) FROM staged WHERE NOT streamfilter_seen('seen', 500 + id);
SELECT count(*) FROM staged JOIN known USING (id) WHERE NOT streamfilter_seen('seen', 600 + staged.id);
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 700 + id) AND id IN (SELECT id + 7 FROM known) ORDER BY id LIMIT 2;
SELECT id FROM staged s WHERE NOT streamfilter_seen('seen', 800 + id) AND NOT EXISTS (SELECT FROM known k WHERE k.id > s.id / 10);
SELECT id FROM known LEFT JOIN (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 900 + id)) s USING (id) ORDER BY 1 LIMIT 1;
SELECT count(*) FROM (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 1000 + id) UNION SELECT id FROM known) u;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 1100 + id) INTERSECT SELECT 0;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 1200 + id) EXCEPT SELECT id FROM staged;
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY id % 2 ORDER BY id) AS n FROM staged
  WHERE NOT streamfilter_seen('seen', 1300 + id)) s WHERE n = 1 ORDER BY id;
SELECT id FROM (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 1400 + id) OFFSET 0) s WHERE id = 1;
SELECT id FROM (SELECT id, streamfilter_seen('seen', 1500 + id) AS repeat FROM staged) s WHERE NOT repeat ORDER BY id LIMIT 1;
SELECT EXISTS (SELECT FROM staged WHERE NOT streamfilter_seen('seen', 1600 + id) ORDER BY id) AS any_new;
WITH new AS MATERIALIZED (SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 1700 + id)) SELECT id FROM new ORDER BY id LIMIT 1;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 1800 + id) ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
SELECT count(id) = 0 AS none FROM t WHERE NOT streamfilter_seen('other', id) AND NOT streamfilter_seen('seen', id);
-- What EXPLAIN ANALYZE says, without times, and what versions of the server say in their own ways.
CREATE FUNCTION explain_analyze(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || statement LOOP
    RETURN NEXT replace(line, '.00 ', ' ');
  END LOOP;
END $$;
SELECT explain_analyze($x$SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', 1900 + id)$x$);
SELECT explain_analyze($x$SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 15000 + id)$x$);
CREATE VIEW new_staged AS SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 2000 + id);
SELECT id FROM new_staged ORDER BY id LIMIT 1;
COPY (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 2100 + id) ORDER BY id LIMIT 1) TO stdout;
-- Once for a plan.
PREPARE first AS SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 2200 + id) ORDER BY id LIMIT 1;
EXECUTE first;
EXECUTE first;
DO $$
BEGIN
  FOR i IN 1 .. 3 LOOP PERFORM count(*) FROM staged WHERE NOT streamfilter_seen('seen', 2300 + id); END LOOP;
END $$;

-- What loses no row: everything is stored or given out, or nothing is judged but what is asked for.
TRUNCATE seen;
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id);
CREATE TABLE copy AS SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 100 + id) ORDER BY id DESC;
SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 200 + id) LIMIT 2;
SELECT count(*) AS remembered FROM staged WHERE streamfilter_test('seen', 200 + id);
SELECT id FROM known LEFT JOIN staged USING (id) WHERE NOT streamfilter_seen('seen', 300 + known.id) AND known.id < 3;
INSERT INTO t SELECT s.id, k.id FROM staged s JOIN known k USING (id) WHERE NOT streamfilter_seen('seen', 400 + s.id + k.id);
INSERT INTO t SELECT s.id, k.id FROM (SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 500 + id)) s LEFT JOIN known k USING (id);
WITH new AS MATERIALIZED (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 600 + id)) INSERT INTO t SELECT * FROM new;
WITH added AS (INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 700 + id) RETURNING id)
SELECT count(*) FROM added;
MERGE INTO t USING (SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 800 + id)) s ON t.id = 10000 + s.id
  WHEN NOT MATCHED THEN INSERT VALUES (10000 + s.id);
INSERT INTO t (id) SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 900 + id) UNION ALL SELECT id FROM known;
INSERT INTO t SELECT 5 WHERE NOT streamfilter_seen('seen', 5000) LIMIT 1;
SELECT EXISTS (SELECT WHERE NOT streamfilter_seen('seen', 5001)) AS new;
-- Repeats, verdicts, looking.
SELECT count(*) FROM staged WHERE streamfilter_seen('seen', 6000 + id);
SELECT count(streamfilter_seen('seen', 7000 + id)) FROM staged;
SELECT repeat, count(*) FROM (SELECT streamfilter_seen('seen', 8000 + id) AS repeat FROM staged) s GROUP BY 1;
SELECT count(*) FROM staged WHERE NOT streamfilter_test('seen', 9000 + id);
SELECT id, streamfilter_seen('seen', 9000 + id) FROM staged ORDER BY id DESC LIMIT 1;
-- EXPLAIN remembers nothing.
EXPLAIN (COSTS OFF) SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 10000 + id) ORDER BY id LIMIT 1;
EXPLAIN (ANALYZE false, COSTS OFF) SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', 10000 + id);
SET streamfilter.batch_insert = on;
SELECT explain_analyze($x$INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 11000 + id)$x$);
RESET streamfilter.batch_insert;
SELECT explain_analyze($x$CREATE TABLE other_copy AS SELECT * FROM staged WHERE NOT streamfilter_seen('seen', 12000 + id)$x$);

DROP VIEW new_staged;
DROP TABLE staged, known, t, copy, other_copy;
DROP FOREIGN TABLE seen, other;
DROP FUNCTION explain_analyze;
