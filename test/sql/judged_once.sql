--
-- One row goes through a filter once: what a statement has given it already, its triggers would take for a repeat
--
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE staged (id int);
INSERT INTO staged SELECT generate_series(1, 3);
CREATE TABLE t (id int);
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');

-- A query asks the filter that the trigger uses.
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SET streamfilter.batch_scan = off;
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id);
RESET streamfilter.batch_scan;
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id) ORDER BY id DESC;
WITH new AS MATERIALIZED (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', id))
INSERT INTO t SELECT * FROM new;
WITH added AS (INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id))
SELECT 1;
INSERT INTO t VALUES (streamfilter_seen('seen', 1)::int);
PREPARE add AS INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id);
EXECUTE add;
MERGE INTO t USING staged s ON t.id = s.id
  WHEN NOT MATCHED AND NOT streamfilter_seen('seen', s.id) THEN INSERT VALUES (s.id);
COPY t FROM stdin WHERE NOT streamfilter_seen('seen', id);
1
\.
-- Or remembers the keys by itself.
WITH fresh AS (INSERT INTO seen SELECT * FROM staged RETURNING id) INSERT INTO t SELECT * FROM fresh;
-- In a function; in a trigger that fires before.
CREATE FUNCTION is_new(id int) RETURNS boolean LANGUAGE plpgsql
AS $$ BEGIN RETURN (SELECT NOT streamfilter_seen('seen', is_new.id)); END $$;
INSERT INTO t SELECT * FROM staged WHERE is_new(id);
CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN IF streamfilter_seen('seen', NEW.id) THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE TRIGGER aa BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION judge();
INSERT INTO t VALUES (1);
DROP TRIGGER aa ON t;
-- In the trigger's own condition.
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW WHEN (NOT streamfilter_seen('seen', NEW.id))
  EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO t VALUES (1);
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
-- Another table's trigger.
CREATE TABLE copied (id int);
CREATE TRIGGER zz BEFORE INSERT ON copied FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
CREATE FUNCTION copy_row() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO copied VALUES (NEW.id); RETURN NEW; END $$;
CREATE TRIGGER aa BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION copy_row();
INSERT INTO t VALUES (1);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP TRIGGER aa ON t;
-- Nothing of all that was remembered, so no row is lost.
SELECT count(*) FROM staged WHERE streamfilter_test('seen', id);

-- What is no second time: another filter, looking, statements one after another, AFTER triggers.
INSERT INTO t SELECT * FROM staged WHERE NOT streamfilter_seen('other', id) AND NOT streamfilter_test('seen', id) RETURNING id;
INSERT INTO t SELECT 3 + id FROM staged WHERE NOT streamfilter_seen('other', 3 + id) RETURNING id;
DO $$
BEGIN
  PERFORM streamfilter_seen('seen', 10);
  INSERT INTO t VALUES (10), (11);
  PERFORM streamfilter_seen('seen', 12);
  INSERT INTO t VALUES (12), (13);
END $$;
SELECT id FROM t WHERE id >= 10;
CREATE TRIGGER after AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION copy_row();
INSERT INTO t VALUES (20), (21);
TABLE copied;
DROP TRIGGER after ON t;
INSERT INTO t SELECT 29 + id FROM staged RETURNING id, streamfilter_test('seen', id);
-- The query judges while the trigger is disabled.
ALTER TABLE t DISABLE TRIGGER zz;
INSERT INTO t SELECT 40 + id FROM staged WHERE NOT streamfilter_seen('seen', 40 + id) RETURNING id;
-- Two tables in one statement: what goes through both would be discarded by the second.
ALTER TABLE t ENABLE TRIGGER zz;
WITH first AS (INSERT INTO copied VALUES (50), (51) RETURNING id) INSERT INTO t SELECT id FROM first;
-- The partitions of a table have one trigger.
CREATE TABLE p (id int) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
CREATE TRIGGER zz BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO p VALUES (60), (160), (61), (161), (60), (160) RETURNING tableoid::regclass, id;
WITH direct AS (INSERT INTO p1 VALUES (62) RETURNING id) INSERT INTO p SELECT id + 100 FROM direct RETURNING id;

-- Rules make two queries of one statement.
CREATE TABLE ruled (id int);
CREATE TABLE ruled_too (id int);
CREATE RULE copy AS ON INSERT TO ruled DO ALSO INSERT INTO ruled_too VALUES (NEW.id);
INSERT INTO ruled SELECT * FROM staged WHERE NOT streamfilter_seen('other', 100 + id);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SET streamfilter.batch_scan = off;
INSERT INTO ruled SELECT * FROM staged WHERE NOT streamfilter_seen('other', 100 + id);
RESET streamfilter.batch_scan;
INSERT INTO ruled VALUES (100);
CREATE TRIGGER zz BEFORE INSERT ON ruled FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('other');
INSERT INTO ruled VALUES (100), (101);
INSERT INTO ruled VALUES (102), (102);
TABLE ruled_too;
CREATE TRIGGER zz BEFORE INSERT ON ruled_too FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('other');
INSERT INTO ruled VALUES (103);
PREPARE rule AS INSERT INTO ruled VALUES (103);
EXECUTE rule;
EXECUTE rule;
SELECT streamfilter_test('other', 103);
-- What is left to do when a query finishes is the same statement.
WITH new AS MATERIALIZED (SELECT id FROM staged WHERE NOT streamfilter_seen('seen', 200 + id)),
  added AS (INSERT INTO t SELECT 200 + id FROM new)
SELECT id FROM new;

-- Triggers of others that ask: not after the query has.
CREATE TABLE asking (id int UNIQUE);
CREATE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF streamfilter_seen('other', NEW.id) THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE FUNCTION ask_by_query() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE known bool;
BEGIN SELECT streamfilter_seen('other', NEW.id) INTO known; IF known THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE FUNCTION one() RETURNS int STABLE LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE TRIGGER ask BEFORE INSERT ON asking FOR EACH ROW EXECUTE FUNCTION ask();
INSERT INTO asking SELECT 300 + id FROM staged WHERE NOT streamfilter_seen('other', 300 + id);
INSERT INTO asking SELECT 300 + id FROM staged WHERE NOT streamfilter_seen('seen', 300 + id) RETURNING id;
INSERT INTO asking SELECT 310 + id FROM staged WHERE one() = 1 ORDER BY 1 LIMIT 1 RETURNING id;
INSERT INTO asking SELECT 310 + id FROM staged WHERE one() = 1 ORDER BY 1 LIMIT 1 RETURNING id;
INSERT INTO asking VALUES (320) ON CONFLICT DO NOTHING;
CREATE OR REPLACE TRIGGER ask BEFORE INSERT ON asking FOR EACH ROW EXECUTE FUNCTION ask_by_query();
INSERT INTO asking SELECT 330 + id FROM staged WHERE NOT streamfilter_seen('other', 330 + id);
INSERT INTO asking SELECT 330 + id FROM staged WHERE one() = 1 ORDER BY 1 LIMIT 1 RETURNING id;
DROP TRIGGER ask ON asking;
CREATE TRIGGER ask AFTER UPDATE ON asking FOR EACH ROW EXECUTE FUNCTION ask();
UPDATE asking SET id = 340 WHERE id = 331 * one() RETURNING id;
SELECT id, streamfilter_test('other', id) AS other FROM asking ORDER BY id;

DROP TABLE t, copied, staged, p, ruled, ruled_too, asking;
DROP FUNCTION is_new, judge, copy_row, ask, ask_by_query, one;
DROP FOREIGN TABLE seen, other;
