--
-- Triggers: a row never vanishes unless it is a repeat, and a key is never remembered without its
-- row. Where that cannot be promised, the statement fails and says what to do.
--
CREATE FOREIGN TABLE seen (id int, name text) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE FOREIGN TABLE seen_ids (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE t (id int, name text, repeated boolean);

-- ---- wrong definitions are refused by CREATE TRIGGER --------------------------------------------

-- Timing, level, event.
CREATE TRIGGER zz AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON t EXECUTE FUNCTION streamfilter_discard('seen');
CREATE TRIGGER zz BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
CREATE TRIGGER zz BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
CREATE TRIGGER zz BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen', 'repeated');
CREATE TRIGGER zz BEFORE TRUNCATE ON t EXECUTE FUNCTION streamfilter_mark('seen', 'repeated');
CREATE VIEW v AS SELECT * FROM t;
CREATE TRIGGER zz INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
DROP VIEW v;
SELECT streamfilter_discard();

-- The filter.
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard();
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('unseen');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('nowhere.seen');
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('nowhere.public.seen');
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen or not');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('t');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE FOREIGN TABLE "Seen" (id int, name text) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
ALTER FOREIGN TABLE seen RENAME TO "seen too";
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('Seen');
ALTER FOREIGN TABLE "seen too" RENAME TO seen;
DROP FOREIGN TABLE "Seen";

-- The columns.
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id', 'name', 'repeated');
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id', 'nmae');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id', 'something');
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id', 'ctid');
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'name', 'id');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TABLE u (id int, names text, n int);
CREATE TRIGGER zz BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER TABLE u RENAME names TO title;
CREATE TRIGGER zz BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
-- An assignment cast (bigint to int) is no implicit cast.
ALTER TABLE u ALTER id TYPE bigint;
CREATE TRIGGER zz BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id', 'title');
-- BEFORE triggers see generated columns as NULL.
ALTER TABLE u ADD twice int GENERATED ALWAYS AS (n * 2) STORED,
  ADD big boolean GENERATED ALWAYS AS (n > 9) STORED;
CREATE TRIGGER zz BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'twice', 'title');
\echo SQLSTATE :LAST_ERROR_SQLSTATE

-- The mark.
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen', 'repeatd');
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen', 'name');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen_ids', 'big', 'n');
CREATE FOREIGN TABLE seen_marks (repeated boolean) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen_marks', 'repeated');
DROP FOREIGN TABLE seen_marks;
DROP TABLE u;
-- Nothing was created.
SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = 't'::regclass;

-- ---- what was not checked then fails at the first row -------------------------------------------

ALTER EVENT TRIGGER streamfilter_check_ddl DISABLE;
CREATE TRIGGER zz_after AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO t VALUES (1, 'a');
DROP TRIGGER zz_after ON t;
CREATE TRIGGER zz_statement BEFORE INSERT ON t EXECUTE FUNCTION streamfilter_mark('seen', 'repeated');
INSERT INTO t VALUES (1, 'a');
DROP TRIGGER zz_statement ON t;
CREATE TRIGGER zz_both BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO t VALUES (1, 'a');
UPDATE t SET name = 'b';
DROP TRIGGER zz_both ON t;
SELECT 'CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION ' || f, $$INSERT INTO t VALUES (1, 'a')$$
FROM unnest(ARRAY[$$streamfilter_discard()$$, $$streamfilter_discard('unseen')$$, $$streamfilter_discard('t')$$,
  $$streamfilter_discard('seen', 'id', 'nmae')$$, $$streamfilter_mark('seen', 'name')$$]) AS f \gexec
DROP TRIGGER zz ON t;
ALTER EVENT TRIGGER streamfilter_check_ddl ENABLE;
TRUNCATE t;

-- ---- another trigger fires later ----------------------------------------------------------------

CREATE FUNCTION drop_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_ids');
-- It may drop the row, which then leaves no key.
CREATE TRIGGER zzz_picky BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION drop_row();
INSERT INTO t VALUES (1, 'a');
SELECT streamfilter_test('seen_ids', 1);
-- It counts if it would fire: not when disabled …
ALTER TABLE t DISABLE TRIGGER zzz_picky;
INSERT INTO t VALUES (1, 'a') RETURNING *;
-- … or meant for replicas only, unless this session is one.
ALTER TABLE t ENABLE REPLICA TRIGGER zzz_picky, ENABLE ALWAYS TRIGGER zz_drop_duplicates;
INSERT INTO t VALUES (2, 'a') RETURNING *;
SET session_replication_role = replica;
INSERT INTO t VALUES (3, 'a') RETURNING *;
SELECT streamfilter_test('seen_ids', 3);
RESET session_replication_role;
DROP TRIGGER zzz_picky ON t;
-- AFTER triggers, statement triggers and triggers for other events do no harm.
CREATE TRIGGER zzz1 AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION drop_row();
CREATE TRIGGER zzz2 BEFORE INSERT ON t EXECUTE FUNCTION drop_row();
CREATE TRIGGER zzz3 BEFORE UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION drop_row();
INSERT INTO t VALUES (3, 'a'), (3, 'b') RETURNING *;
DROP TRIGGER zzz1 ON t;
DROP TRIGGER zzz2 ON t;
DROP TRIGGER zzz3 ON t;
-- One filter cannot judge it twice: the second time it would take every row for a repeat.
CREATE TRIGGER zz_drop_more BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_ids');
CREATE TRIGGER zz_drop_again BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen_ids', 'repeated');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
-- A partition may have a trigger of its own.
CREATE TABLE p (k int, id int) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
CREATE TRIGGER zzz_picky BEFORE INSERT ON p2 FOR EACH ROW EXECUTE FUNCTION drop_row();
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_ids');
INSERT INTO p VALUES (1, 10), (1, 10) RETURNING *;
INSERT INTO p VALUES (2, 11);
SELECT streamfilter_test('seen_ids', 11);
DROP TRIGGER zzz_picky ON p2;
CREATE TRIGGER zz_again BEFORE INSERT ON p2 FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_ids');

-- ---- ON CONFLICT --------------------------------------------------------------------------------

-- An upsert of a repeat is discarded.
ALTER TABLE t ADD PRIMARY KEY (id);
INSERT INTO t VALUES (20, 'a') ON CONFLICT DO NOTHING;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
INSERT INTO t VALUES (20, 'a') ON CONFLICT (id) DO UPDATE SET name = 'b';
WITH x AS (INSERT INTO t VALUES (20, 'a') ON CONFLICT DO NOTHING RETURNING *) TABLE x;
INSERT INTO p VALUES (1, 20) ON CONFLICT DO NOTHING;
SELECT streamfilter_test('seen_ids', 20);
-- It concerns the table that it is said of, not others in the same statement.
CREATE TABLE other (id int PRIMARY KEY);
WITH x AS (INSERT INTO other VALUES (1), (1) ON CONFLICT DO NOTHING RETURNING *)
INSERT INTO t SELECT 20 + id FROM x RETURNING *;
-- A trigger that inserts elsewhere while an upsert runs is a statement of its own.
CREATE FUNCTION log_other() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO t VALUES (30 + NEW.id, 'log'), (30 + NEW.id, 'log'); RETURN NEW; END $$;
CREATE TRIGGER log BEFORE INSERT ON other FOR EACH ROW EXECUTE FUNCTION log_other();
INSERT INTO other VALUES (1), (2) ON CONFLICT DO NOTHING;
SELECT * FROM t WHERE id > 30 ORDER BY id;
DROP TABLE other;
-- With the trigger out of the way ON CONFLICT works as ever.
SET streamfilter.enabled = off;
INSERT INTO t VALUES (1, 'z') ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING *;
RESET streamfilter.enabled;

-- ---- UPDATE and MERGE that move rows between partitions -----------------------------------------

-- They fire BEFORE INSERT triggers where the row arrives. Such a row is not new: it passes.
TRUNCATE p;
INSERT INTO p VALUES (1, 101), (1, 102), (2, 103);
UPDATE p SET k = 2 WHERE id = 101;
UPDATE p SET k = 3 - k, id = id + 100 WHERE id > 101 RETURNING tableoid::regclass, *;
SELECT tableoid::regclass, * FROM p ORDER BY id;
-- Moved rows are not remembered either: the trigger sees rows come, not change.
SELECT streamfilter_test('seen_ids', 202);
PREPARE move AS UPDATE p SET k = 3 - k;
EXECUTE move;
EXECUTE move;
SELECT count(*) FROM p;

-- MERGE: what it moves passes, what it inserts is judged.
MERGE INTO p USING (VALUES (101)) AS v (id) ON p.id = v.id
  WHEN MATCHED THEN UPDATE SET k = 3 - k;
MERGE INTO p USING (VALUES (101), (103), (104)) AS v (id) ON p.id = v.id
  WHEN NOT MATCHED THEN INSERT VALUES (1, v.id);
MERGE INTO p USING (VALUES (101), (102), (103), (105), (105)) AS v (id) ON p.id = v.id
  WHEN MATCHED THEN UPDATE SET k = 3 - k
  WHEN NOT MATCHED THEN INSERT VALUES (2, v.id);
MERGE INTO p USING (VALUES (104, 'go'), (105, 'move'), (106, 'come'), (203, 'stay'), (105, 'no'))
    AS v (id, what) ON p.id = v.id AND what <> 'no'
  WHEN MATCHED AND what = 'go' THEN DELETE
  WHEN MATCHED AND what = 'move' THEN UPDATE SET k = 3 - k
  WHEN MATCHED THEN DO NOTHING
  WHEN NOT MATCHED THEN INSERT VALUES (1, v.id);
SELECT tableoid::regclass, * FROM p ORDER BY id;

-- Several kinds of statement in one: each row is told apart.
WITH moved AS (UPDATE p SET k = 3 - k WHERE id = 101 RETURNING id)
INSERT INTO p SELECT 1, n FROM moved, generate_series(101, 107) AS n RETURNING *;
WITH added AS (INSERT INTO p VALUES (1, 107), (1, 108) RETURNING id)
UPDATE p SET k = 3 - k WHERE id IN (101, 105) RETURNING *;
WITH upserted AS (INSERT INTO p VALUES (1, 109) ON CONFLICT DO NOTHING)
UPDATE p SET k = 3 - k WHERE id IN (101, 105) RETURNING *;
SELECT streamfilter_test('seen_ids', 108), streamfilter_test('seen_ids', 109);
SELECT tableoid::regclass, * FROM p ORDER BY id;

-- A function that the UPDATE calls inserts by itself: that is new.
CREATE FUNCTION add_p(id int) RETURNS int LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO p VALUES (1, add_p.id); RETURN 1; END $$;
UPDATE p SET k = 3 - k + 0 * (add_p(110) + add_p(110)) WHERE id = 101;
CREATE FUNCTION copy_p() RETURNS int LANGUAGE plpgsql
AS $$ BEGIN COPY p FROM PROGRAM 'printf "1\t111\n2\t111\n"'; RETURN 1; END $$;
UPDATE p SET k = 3 - k + 0 * copy_p() WHERE id = 101;
SELECT tableoid::regclass, * FROM p WHERE id IN (101, 110, 111) ORDER BY id;
DROP FUNCTION add_p, copy_p;

-- Rows of several levels of partitions, moved at the top, in the middle, and by DELETE + INSERT.
CREATE TABLE q (k int, l int, id int) PARTITION BY LIST (k);
CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1) PARTITION BY LIST (l);
CREATE TABLE q11 PARTITION OF q1 FOR VALUES IN (1);
CREATE TABLE q12 (id int, l int, k int);
ALTER TABLE q1 ATTACH PARTITION q12 FOR VALUES IN (2);
CREATE TABLE q2 PARTITION OF q FOR VALUES IN (2);
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON q FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_ids');
INSERT INTO q VALUES (1, 1, 301), (1, 2, 302), (2, 0, 303), (2, 0, 301);
UPDATE q SET k = 3 - k, l = 2;
UPDATE q1 SET l = 3 - l;
SELECT tableoid::regclass, * FROM q ORDER BY id;
WITH gone AS (DELETE FROM q RETURNING *) INSERT INTO q SELECT * FROM gone;
SELECT count(*) FROM q;
DROP TABLE q;

-- The same for marks: what moves keeps its mark.
CREATE TABLE m (k int, id int, repeated boolean) PARTITION BY LIST (k);
CREATE TABLE m1 PARTITION OF m FOR VALUES IN (1);
CREATE TABLE m2 PARTITION OF m FOR VALUES IN (2);
CREATE TRIGGER zz_mark BEFORE INSERT ON m FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen_ids', 'repeated');
INSERT INTO m VALUES (1, 401), (1, 401), (2, 402);
UPDATE m SET k = 3 - k;
SELECT tableoid::regclass, * FROM m ORDER BY id, repeated;
INSERT INTO m VALUES (1, 403) ON CONFLICT DO NOTHING;
DROP TABLE m;

-- ---- what changes under a trigger ---------------------------------------------------------------

-- A filter goes only with its triggers.
DROP FOREIGN TABLE seen_ids;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
UPDATE p SET k = 3 - k WHERE id = 101;
INSERT INTO t VALUES (50, 'a'), (50, 'b') RETURNING *;
-- Gone and back while the plan stays, in one transaction and over a savepoint.
PREPARE add AS INSERT INTO t VALUES ($1) RETURNING id;
EXECUTE add (51);
BEGIN;
EXECUTE add (51);
DROP FOREIGN TABLE seen_ids CASCADE;
EXECUTE add (52);
CREATE FOREIGN TABLE seen_ids (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_ids');
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_ids');
-- A savepoint takes the new state back, with what was said of it: how often that is said depends on caches.
SET LOCAL client_min_messages = error;
SAVEPOINT s;
EXECUTE add (53);
ROLLBACK TO s;
EXECUTE add (53);
EXECUTE add (53);
COMMIT;
EXECUTE add (53);
-- An ALTER after which every INSERT would fail is refused, unless the trigger is disabled.
ALTER TABLE t ALTER id TYPE bigint;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER TABLE t DROP id;
ALTER TABLE t DISABLE TRIGGER zz_drop_duplicates;
ALTER TABLE t ALTER id TYPE bigint;
ALTER TABLE t ENABLE TRIGGER zz_drop_duplicates;
ALTER TABLE t ALTER id TYPE int;
ALTER TABLE t ENABLE TRIGGER zz_drop_duplicates;
-- What does no harm is not, here and in the filter.
ALTER TABLE t ALTER id TYPE smallint;
INSERT INTO t VALUES (60, 'a'), (53, 'a') RETURNING id;
ALTER FOREIGN TABLE seen_ids RENAME id TO number;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER FOREIGN TABLE seen_ids ADD name text;
ALTER TABLE t ALTER id TYPE int;
ALTER FOREIGN TABLE seen_ids ALTER id TYPE smallint;
-- A new owner needs the right to insert into the filter, as the old one.
CREATE ROLE streamfilter_heir;
ALTER TABLE t OWNER TO streamfilter_heir;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP ROLE streamfilter_heir;
-- What no event trigger has seen fails at the first row.
ALTER EVENT TRIGGER streamfilter_check_ddl DISABLE;
ALTER TABLE t RENAME id TO number;
INSERT INTO t VALUES (60, 'a');
ALTER TABLE t RENAME number TO id;
ALTER TABLE t ALTER id TYPE bigint;
INSERT INTO t VALUES (60, 'a');
ALTER TABLE t ALTER id TYPE smallint;
INSERT INTO t VALUES (60, 'a'), (53, 'a') RETURNING id;
ALTER TABLE t DROP id;
INSERT INTO t VALUES ('a');
ALTER TABLE t ADD id int;
INSERT INTO t (id) VALUES (60), (61) RETURNING id;
ALTER FOREIGN TABLE seen_ids RENAME id TO number;
INSERT INTO t (id) VALUES (62);
ALTER FOREIGN TABLE seen_ids RENAME number TO id;
ALTER FOREIGN TABLE seen_ids ADD name text;
INSERT INTO t (id, name) VALUES (60, 'a'), (60, 'b'), (60, 'a') RETURNING id, name;
ALTER FOREIGN TABLE seen_ids DROP name;
ALTER EVENT TRIGGER streamfilter_check_ddl ENABLE;

-- ---- a filter of the same name earlier in the path ----------------------------------------------

-- A role that can create tables in a schema of its own cannot make other people's rows vanish.
CREATE ROLE streamfilter_mallory;
CREATE SCHEMA mallory AUTHORIZATION streamfilter_mallory;
GRANT INSERT, SELECT ON t TO streamfilter_mallory;
GRANT USAGE ON FOREIGN SERVER streamfilter TO streamfilter_mallory;
SET ROLE streamfilter_mallory;
SET search_path = mallory, pg_temp, public;
CREATE FOREIGN TABLE mallory.seen_ids (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
GRANT ALL ON mallory.seen_ids TO PUBLIC;
SELECT streamfilter_seen('mallory.seen_ids', 70);
INSERT INTO t (id) VALUES (70), (70) RETURNING id;
RESET ROLE;
CREATE FOREIGN TABLE pg_temp.seen_ids (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
SELECT streamfilter_seen('pg_temp.seen_ids', 71);
INSERT INTO t (id) VALUES (71), (71) RETURNING id;
RESET search_path;

-- ---- triggers that go while a statement fires them -----------------------------------------------

-- As for any trigger, the statement has a copy, which fires to its end, though the table has none left.
CREATE TABLE g (id int, note text);
CREATE FUNCTION drop_triggers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.note = 'drop' THEN
    DROP TRIGGER zz ON g;
    DROP TRIGGER aa ON g;
  ELSIF NEW.note = 'undo' THEN
    BEGIN
      DROP TRIGGER zz ON g;
      DROP TRIGGER aa ON g;
      RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION make_triggers() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  CREATE TRIGGER aa BEFORE INSERT ON g FOR EACH ROW EXECUTE FUNCTION drop_triggers();
  CREATE TRIGGER zz BEFORE INSERT ON g FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_gone', 'id');
END $$;
CREATE FOREIGN TABLE seen_gone (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
SELECT make_triggers();
INSERT INTO g VALUES (1, 'a'), (2, 'undo'), (2, 'b'), (3, 'drop'), (1, 'c'), (4, 'd') RETURNING *;
SELECT make_triggers();
SET streamfilter.batch_insert = off;
INSERT INTO g VALUES (11, 'drop'), (11, 'a'), (12, 'b');
RESET streamfilter.batch_insert;
SELECT make_triggers();
COPY g FROM stdin;
21	drop
21	a
22	b
\.
SELECT make_triggers();
SET debug_discard_caches = 0; -- 300 rows would take a minute
INSERT INTO g SELECT i, CASE i WHEN 300 THEN 'drop' END FROM generate_series(31, 330) i;
RESET debug_discard_caches;
TABLE g ORDER BY id, note LIMIT 8;
SELECT count(*) FROM g;
-- So does one that would fire later and drop rows that the filter remembers.
SELECT make_triggers();
CREATE OR REPLACE FUNCTION drop_triggers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN DROP TRIGGER zzz_picky ON g; RETURN NEW; END $$;
CREATE TRIGGER zzz_picky BEFORE INSERT ON g FOR EACH ROW EXECUTE FUNCTION drop_row();
INSERT INTO g VALUES (1000, 'a');
SELECT streamfilter_test('seen_gone', 1000);
DROP TABLE g;
-- A clone in a partition, and a trigger that is not bound yet, have their filter from the catalog. Without
-- that the name is not looked up: another filter may have it.
CREATE FOREIGN TABLE seen_else (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
INSERT INTO seen_else VALUES (11), (12);
CREATE TABLE g (id int) PARTITION BY RANGE (id);
CREATE TABLE g1 PARTITION OF g FOR VALUES FROM (0) TO (1000);
CREATE FUNCTION swap(id int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF id = 2 THEN
    DROP TRIGGER zz ON g;
    ALTER FOREIGN TABLE seen_gone RENAME TO seen_before;
    ALTER FOREIGN TABLE seen_else RENAME TO seen_gone;
  END IF;
  RETURN id;
END $$;
CREATE TRIGGER zz BEFORE INSERT ON g FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_gone');
INSERT INTO g SELECT swap(i) FROM unnest('{501,2,11,12,501}'::int[]) i;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SET streamfilter.batch_insert = off;
INSERT INTO g SELECT swap(i) FROM unnest('{501,2,11,12,501}'::int[]) i;
INSERT INTO g1 SELECT swap(i) FROM unnest('{501,2,11,12,501}'::int[]) i;
SELECT count(*), bool_or(streamfilter_test('seen_gone', i)) FROM g, unnest('{501,2,11,12}'::int[]) i;
DROP TABLE g;
CREATE TABLE g (id int);
ALTER EVENT TRIGGER streamfilter_check_ddl DISABLE;
CREATE TRIGGER zz BEFORE INSERT ON g FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_gone');
ALTER EVENT TRIGGER streamfilter_check_ddl ENABLE;
INSERT INTO g SELECT swap(i) FROM unnest('{501,2,11,12,501}'::int[]) i;
RESET streamfilter.batch_insert;
DROP TABLE g;
DROP FUNCTION swap, drop_triggers, make_triggers;
DROP FOREIGN TABLE seen_gone, seen_else;

-- ---- clean up -----------------------------------------------------------------------------------
DROP TABLE t, p;
DROP FUNCTION drop_row, log_other;
DROP FOREIGN TABLE seen, public.seen_ids, pg_temp.seen_ids;
DROP SCHEMA mallory CASCADE;
REVOKE ALL ON FOREIGN SERVER streamfilter FROM streamfilter_mallory;
DROP ROLE streamfilter_mallory;

-- A key that each row makes for itself.
CREATE FUNCTION own_number() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
CREATE DOMAIN stamped AS timestamptz DEFAULT now();
CREATE TABLE own (a serial, b int GENERATED BY DEFAULT AS IDENTITY, c uuid DEFAULT gen_random_uuid(), d timestamptz DEFAULT now(),
  e int DEFAULT 7, f int, g int DEFAULT own_number(), h stamped);
CREATE FOREIGN TABLE seen_own (a int, b int, c uuid, d timestamptz, e int, f int, g int, h timestamptz) SERVER streamfilter OPTIONS (memory '64kB');
CREATE TRIGGER zz BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_own');
DROP TRIGGER zz ON own;
\set VERBOSITY default
CREATE FOREIGN TABLE seen_one (n int) SERVER streamfilter OPTIONS (memory '64kB');
CREATE TRIGGER zz BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_one', 'a');
DROP TABLE own;
DROP DOMAIN stamped;
DROP FUNCTION own_number;
DROP FOREIGN TABLE seen_own, seen_one;
