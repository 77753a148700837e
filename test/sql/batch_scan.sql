-- A scan filtered by NOT streamfilter_seen() reads rows ahead; the result is that of the plain filter.
SET streamfilter.lost_rows = warn;
CREATE TABLE events (id int, key int, note text);
INSERT INTO events SELECT i, i % 1000, repeat('x', i % 7) FROM generate_series(1, 5000) AS i;
INSERT INTO events VALUES (5001, NULL, NULL);
CREATE FOREIGN TABLE seen (key int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB', seed '1', fpr '0.01');
CREATE FOREIGN TABLE seen_plain (key int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB', seed '1', fpr '0.01');

EXPLAIN (COSTS OFF) SELECT * FROM events WHERE NOT streamfilter_seen('seen', key) AND id > 10;
EXPLAIN (COSTS OFF, VERBOSE) SELECT note FROM events WHERE NOT streamfilter_seen('seen', key);
SET streamfilter.batch_scan = off;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE NOT streamfilter_seen('seen', key) AND id > 10;
CREATE TABLE plain AS SELECT * FROM events WHERE NOT streamfilter_seen('seen_plain', key) AND id > 10;
RESET streamfilter.batch_scan;
CREATE TABLE batch AS SELECT * FROM events WHERE NOT streamfilter_seen('seen', key) AND id > 10;
SELECT count(*), count(key), min(id), max(id) FROM batch;
SELECT count(*) AS different FROM ((TABLE plain EXCEPT ALL TABLE batch) UNION ALL (TABLE batch EXCEPT ALL TABLE plain)) d;
SELECT accepted, discarded FROM streamfilter_stats WHERE filter::text LIKE 'seen%';
-- The same state, too.
SELECT streamfilter_value('seen')::text = streamfilter_value('seen_plain')::text AS same_state;

-- Only rows that are asked for are judged.
TRUNCATE seen;
SELECT key FROM events WHERE NOT streamfilter_seen('seen', key) LIMIT 3;
SELECT count(*) AS remembered FROM generate_series(0, 999) AS key WHERE streamfilter_test('seen', key);
BEGIN;
DECLARE first_rows CURSOR FOR SELECT key FROM events WHERE NOT streamfilter_seen('seen', key);
FETCH 2 FROM first_rows;
CLOSE first_rows;
COMMIT;
SELECT count(*) AS remembered FROM generate_series(0, 999) AS key WHERE streamfilter_test('seen', key);

-- Rescans, as the inner side of a join.
TRUNCATE seen;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
-- Ordered, so that no version aggregates below the join.
SELECT outer_side, count(1 ORDER BY key) FROM generate_series(1, 2) AS outer_side
  CROSS JOIN LATERAL (SELECT key FROM events WHERE NOT streamfilter_seen('seen', key) AND id > outer_side * 0) AS inner_side
GROUP BY 1 ORDER BY 1;
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material;

-- What is read ahead by an index, an expression as key, a column that nothing else needs, a dropped column.
CREATE INDEX ON events (id);
ALTER TABLE events DROP COLUMN note;
TRUNCATE seen;
SET enable_seqscan = off; SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM events WHERE NOT streamfilter_seen('seen', key + 1) AND id BETWEEN 1 AND 50;
SELECT count(id), sum(id) FROM events WHERE NOT streamfilter_seen('seen', key + 1) AND id BETWEEN 1 AND 50;
SELECT count(*) FROM events WHERE NOT streamfilter_seen('seen', key + 1) AND id BETWEEN 1 AND 60;
RESET enable_seqscan; RESET enable_bitmapscan;

-- System columns, whole rows, aggregates, an outer join.
TRUNCATE seen;
SELECT ctid, tableoid::regclass FROM events WHERE NOT streamfilter_seen('seen', key) LIMIT 2;
SELECT events FROM events WHERE NOT streamfilter_seen('seen', key) LIMIT 2;
SELECT count(*), sum(id + 1) FROM events WHERE NOT streamfilter_seen('seen', key);
TRUNCATE seen;
SELECT count(*), count(e.key) FROM generate_series(1, 2000) AS i
  LEFT JOIN (SELECT key, coalesce(id, 0) AS id FROM events WHERE NOT streamfilter_seen('seen', key)) e ON e.key = i;

-- Rows of functions and lists are read ahead, too; not where the values of a list are volatile.
TRUNCATE seen;
EXPLAIN (COSTS OFF) SELECT u.i FROM unnest('{1,2,1,3}'::int[], '{a,b,c,d}'::text[]) WITH ORDINALITY AS u (i, t, n) WHERE NOT streamfilter_seen('seen', u.i);
SELECT * FROM unnest('{1,2,1,3}'::int[], '{a,b,c,d}'::text[]) WITH ORDINALITY AS u (i, t, n) WHERE NOT streamfilter_seen('seen', u.i);
SELECT * FROM ROWS FROM (generate_series(3, 5), json_to_recordset('[{"a": 1, "b": "x"}, {"a": 2}]') AS (a int, b text)) AS r (i, a, b)
WHERE NOT streamfilter_seen('seen', r.i);
EXPLAIN (COSTS OFF) SELECT * FROM (VALUES (5, 'five'), (6, 'six'), (6, 'again')) AS v (i, t) WHERE NOT streamfilter_seen('seen', i);
SELECT * FROM (VALUES (5, 'five'), (6, 'six'), (6, 'again')) AS v (i, t) WHERE NOT streamfilter_seen('seen', i);
SELECT count(*) FROM (SELECT FROM generate_series(101, 400) AS i WHERE NOT streamfilter_seen('seen', i) LIMIT 7) AS first_rows;
SELECT count(*) FROM generate_series(101, 400) AS i WHERE streamfilter_test('seen', i);
EXPLAIN (COSTS OFF) SELECT * FROM (VALUES (5, random()), (6, 1)) AS v (i, t) WHERE NOT streamfilter_seen('seen', i);
SELECT o, (SELECT count(*) FROM generate_series(o, 2000) AS i WHERE NOT streamfilter_seen('seen', i)) FROM generate_series(1999, 2000) AS o;

-- Not where the filter is not a constant, or there are other volatile conditions.
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE NOT streamfilter_seen('seen', key) AND random() < 2;

-- Errors are those of the function.
SELECT * FROM events WHERE NOT streamfilter_seen('seen', key, id);
SELECT * FROM events WHERE NOT streamfilter_seen('seen', id::text);
BEGIN READ ONLY;
SELECT count(*) FROM events WHERE NOT streamfilter_seen('seen', key);
ROLLBACK;
CREATE ROLE batch_reader;
GRANT SELECT ON events TO batch_reader;
SET ROLE batch_reader;
SELECT count(*) FROM events WHERE NOT streamfilter_seen('seen', key);
RESET ROLE;

-- Partitions, and INSERT ... SELECT from the table that is inserted into.
CREATE TABLE parted (key int) PARTITION BY RANGE (key);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (500);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (500) TO (1000);
INSERT INTO parted SELECT key FROM events WHERE key IS NOT NULL;
TRUNCATE seen;
SELECT count(*) FROM parted WHERE NOT streamfilter_seen('seen', key);
TRUNCATE seen;
INSERT INTO events SELECT id, key FROM events WHERE NOT streamfilter_seen('seen', key);

DROP TABLE events, plain, batch, parted;
DROP FOREIGN TABLE seen, seen_plain;
DROP ROLE batch_reader;

-- ---- what it is expected to cost, and what it has done ------------------------------------------

CREATE TABLE many AS SELECT i % 100 AS key FROM generate_series(1, 20000) AS i;
CREATE FOREIGN TABLE many_seen (key int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '5');
ANALYZE many;
\getenv folder PG_ABS_SRCDIR
\set ways :folder '/sql/shared/ways.sql'
\set ECHO none
\i :ways
\set ECHO all
SELECT explain_analyze($x$SELECT * FROM many WHERE NOT streamfilter_seen('many_seen', key)$x$);
CREATE FUNCTION cost_of(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
  RETURN plan -> 0 -> 'Plan' ->> 'Total Cost';
END $$;
-- Judging is no reason to compile a query; a condition of the user's comes before it all the same.
SELECT cost_of(q) < 5 * cost_of('SELECT * FROM many') AS cheap
FROM (VALUES ($$SELECT * FROM many WHERE NOT streamfilter_seen('many_seen', key)$$),
             ($$SELECT * FROM many WHERE streamfilter_test('many_seen', key)$$)) AS queries (q);
SET streamfilter.batch_scan = off;
SELECT cost_of($$SELECT * FROM many WHERE NOT streamfilter_seen('many_seen', key)$$) < 3 * cost_of('SELECT * FROM many') AS cheap;
CREATE FUNCTION passes(int) RETURNS boolean LANGUAGE sql STABLE COST 500 AS 'SELECT $1 > 50' SET work_mem = '4MB';
EXPLAIN (COSTS OFF) SELECT * FROM many WHERE NOT streamfilter_seen('many_seen', key) AND passes(key);
CREATE INDEX ON many (key);
SET enable_bitmapscan = off;
SET enable_seqscan = off;
SELECT cost_of($$SELECT * FROM many WHERE NOT streamfilter_seen('many_seen', key) AND key < 10$$) <
       3 * cost_of('SELECT * FROM many WHERE key < 10') AS cheap;
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT cost_of($$SELECT * FROM many WHERE NOT streamfilter_seen('many_seen', key) AND key < 10$$) <
       3 * cost_of('SELECT * FROM many WHERE key < 10') AS cheap;
RESET enable_seqscan;
RESET enable_indexscan;
RESET streamfilter.batch_scan;
DROP TABLE many;
DROP FOREIGN TABLE many_seen;
DROP FUNCTION explain_analyze, compare, way_of, cost_of, passes;

-- Rows of more pages than a batch keeps, in the order of the table and in another; also while they are updated.
CREATE TABLE sparse (key int, note text, n numeric) WITH (fillfactor = 10);
INSERT INTO sparse SELECT i, repeat(md5(i::text), 3), i / 7.0 FROM generate_series(1, 3000) AS i;
CREATE FOREIGN TABLE sparse_seen (key int) SERVER streamfilter OPTIONS (memory '64kB', fpr '1e-6', seed '1');
CREATE TABLE taken (LIKE sparse);
INSERT INTO taken SELECT * FROM sparse WHERE NOT streamfilter_seen('sparse_seen', key);
SELECT count(*) AS lost FROM (TABLE sparse EXCEPT ALL TABLE taken) AS lost;
TRUNCATE taken, sparse_seen;
CREATE INDEX ON sparse (md5(key::text));
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM sparse WHERE NOT streamfilter_seen('sparse_seen', key) AND md5(key::text) > '';
INSERT INTO taken SELECT * FROM sparse WHERE NOT streamfilter_seen('sparse_seen', key) AND md5(key::text) > '';
SELECT count(*) AS lost FROM (TABLE sparse EXCEPT ALL TABLE taken) AS lost;
RESET enable_seqscan;
RESET enable_bitmapscan;
TRUNCATE sparse_seen;
DO $$
DECLARE row sparse; rows int := 0;
BEGIN
  FOR row IN SELECT * FROM sparse WHERE NOT streamfilter_seen('sparse_seen', key) LOOP
    UPDATE sparse SET n = -1 WHERE key = row.key + 1;
    ASSERT row.n = row.key / 7.0 AND row.note = repeat(md5(row.key::text), 3), row;
    rows := rows + 1;
  END LOOP;
  ASSERT rows = 3000, rows;
END $$;
DROP TABLE sparse, taken;
DROP FOREIGN TABLE sparse_seen;
