--
-- Rows that can be lost without a word: docs/when-rows-can-be-lost.md says what to do instead
--
CREATE TABLE staged (id int, note text);
INSERT INTO staged SELECT i, 'row ' || i FROM generate_series(1, 10) AS i;
CREATE TABLE t (id int PRIMARY KEY, note text);
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
\set lost 'SELECT count(*) AS lost FROM staged s WHERE streamfilter_test(\'seen\', id) AND NOT EXISTS (SELECT FROM t WHERE t.note = s.note)'

-- Another index would refuse the row that the filter has accepted.
INSERT INTO t VALUES (3, 'in the way');
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) ON CONFLICT DO NOTHING;
:lost;
-- Instead: let the index say so first.
TRUNCATE t, staged, seen;
INSERT INTO staged SELECT i, 'row ' || i FROM generate_series(1, 10) AS i;
INSERT INTO t VALUES (3, 'in the way');
WITH new AS MATERIALIZED (SELECT * FROM staged WHERE NOT EXISTS (SELECT FROM t WHERE t.id = staged.id))
INSERT INTO t SELECT * FROM new WHERE NOT streamfilter_seen('seen', id);
:lost;

-- Another trigger drops the row: the query has asked the filter before. An error.
TRUNCATE t, seen;
CREATE FUNCTION no_odd_ones() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE NEW.id % 2 WHEN 0 THEN NEW END; END';
CREATE TRIGGER aa BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no_odd_ones();
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id);
:lost;
-- Instead: a trigger of the filter, which fires last.
TRUNCATE t, seen;
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO t SELECT * FROM staged;
:lost;
DROP TRIGGER aa ON t;

-- Two statements that each ask.
TRUNCATE t, seen;
DO $$
DECLARE r staged;
BEGIN
  FOR r IN SELECT * FROM staged LOOP
    IF NOT streamfilter_seen('seen', r.id) THEN INSERT INTO t SELECT r.*; END IF;
  END LOOP;
END $$;
:lost;
-- Instead: one of them.
TRUNCATE t, seen;
INSERT INTO t SELECT * FROM staged;
:lost;

-- The session that asks has the rows; if it has not stored them when that is committed, they are lost. A sorted cursor has asked about all.
DROP TRIGGER zz ON t;
TRUNCATE t, seen;
BEGIN;
DECLARE sorted CURSOR FOR SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY id DESC;
FETCH 1 FROM sorted;
COMMIT;
:lost;
TRUNCATE seen;
SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) AND id = 1;
:lost;
-- Instead: in the transaction that stores them; an error forgets both.
TRUNCATE seen;
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) AND 1 / (id - 10) < 1;
:lost;

-- A second filter would call the row a repeat that the first has remembered as new.
CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
INSERT INTO other VALUES (5);
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) AND NOT streamfilter_seen('other', id);
:lost;

-- Tables that share a filter share their keys.
TRUNCATE t, seen;
CREATE TABLE t2 (LIKE t);
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
CREATE TRIGGER zz BEFORE INSERT ON t2 FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO t2 VALUES (1, 'another table');
INSERT INTO t VALUES (1, 'row 1');
TABLE t;
-- A key that is too narrow, or rounded on its way: different events have the same.
CREATE TABLE readings (sensor int, at timestamptz, value float8);
CREATE FOREIGN TABLE seen_readings (sensor int, at timestamptz(0)) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TRIGGER zz BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_readings');
INSERT INTO readings VALUES (1, '2026-01-01 00:00:00.1+00', 1), (1, '2026-01-01 00:00:00.2+00', 2);
SELECT sensor, value FROM readings;

-- The filter knows rows that the table has no more.
TRUNCATE t2, seen;
INSERT INTO t2 SELECT * FROM staged;
DELETE FROM t2;
INSERT INTO t2 SELECT * FROM staged;
-- Instead: empty both, or let the filter forget (test/sql/forget.sql).
TRUNCATE seen;
INSERT INTO t2 SELECT * FROM staged;

-- More keys than the filter was made for.
CREATE FOREIGN TABLE crowded (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', seed '1', overfull 'discard', fpr '0.01');
CREATE TABLE numbers (id int);
CREATE TRIGGER zz BEFORE INSERT ON numbers FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('crowded');
DO 'BEGIN FOR i IN 0 .. 9 LOOP INSERT INTO numbers SELECT i * 1000 + j FROM generate_series(1, 1000) AS j; COMMIT; END LOOP; END';
SELECT 10000 - count(*) > 1000 AS many_lost FROM numbers;
SELECT fpr_bound >= fpr_now AS told, fpr_now > 0.1 AS now FROM streamfilter_stats WHERE filter = 'crowded'::regclass;

DROP TABLE staged, t, t2, readings, numbers;
DROP FOREIGN TABLE seen, other, seen_readings, crowded;
DROP FUNCTION no_odd_ones;
