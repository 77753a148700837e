--
-- A trigger means the filter that it was created with, whatever happens to names, and the filter
-- cannot go without it.
--
CREATE FUNCTION argument(trigger name) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT tgrelid::regclass || ': ' || encode(tgargs, 'escape')
  FROM pg_trigger WHERE tgname = trigger ORDER BY 1;
$$;
CREATE SCHEMA app;
CREATE SCHEMA other;
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE app.t (id int, mark boolean);
CREATE TRIGGER zz BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO app.t VALUES (1), (1) RETURNING id;

-- The name is written with its schema, so that a dump restores the same filter.
SELECT argument('zz');

-- ---- a stranger of the same name -----------------------------------------------------------------

CREATE ROLE streamfilter_mallory;
GRANT USAGE, CREATE ON SCHEMA app TO streamfilter_mallory;
GRANT USAGE ON FOREIGN SERVER streamfilter TO streamfilter_mallory;
GRANT USAGE ON SCHEMA public TO streamfilter_mallory;
SET ROLE streamfilter_mallory;
CREATE FOREIGN TABLE app.seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
GRANT ALL ON app.seen TO PUBLIC;
INSERT INTO app.seen SELECT generate_series(1, 100);
RESET ROLE;
INSERT INTO app.t VALUES (2), (2), (1) RETURNING id;
DROP FOREIGN TABLE app.seen;

-- ---- rename and move -----------------------------------------------------------------------------

ALTER FOREIGN TABLE seen RENAME TO "Seen Ids";
SELECT argument('zz');
INSERT INTO app.t VALUES (2), (3) RETURNING id;
ALTER TABLE "Seen Ids" SET SCHEMA other;
SELECT argument('zz');
ALTER SCHEMA other RENAME TO "Other";
SELECT argument('zz');
-- The new name is also that of a table that comes first in the path.
CREATE TABLE app."Ids" (id int);
SET search_path = app, "Other", public;
ALTER FOREIGN TABLE "Seen Ids" RENAME TO "Ids";
SELECT public.argument('zz');
ALTER FOREIGN TABLE "Other"."Ids" RENAME TO "Seen Ids";
RESET search_path;
DROP TABLE app."Ids";
-- Another filter takes its old name.
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
INSERT INTO app.t VALUES (3), (4) RETURNING id;
SELECT streamfilter_test('seen', 4);
-- The table may move, too, and the trigger may be renamed, disabled and enabled.
ALTER TABLE app.t SET SCHEMA public;
ALTER TRIGGER zz ON t RENAME TO zz2;
ALTER TABLE t DISABLE TRIGGER zz2;
ALTER TABLE t ENABLE TRIGGER zz2;
INSERT INTO t VALUES (4), (5) RETURNING id;
SELECT argument('zz2');
-- What is rolled back has not happened.
BEGIN;
ALTER FOREIGN TABLE "Other"."Seen Ids" RENAME TO ids;
ROLLBACK;
SELECT argument('zz2');
-- The other arguments stay.
CREATE OR REPLACE TRIGGER zz2 BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('"Other"."Seen Ids"', 'mark', 'id');
ALTER FOREIGN TABLE "Other"."Seen Ids" SET SCHEMA app;
SELECT argument('zz2');
INSERT INTO t VALUES (5), (6) RETURNING *;

-- A trigger of a schema that is created with all that is in it.
CREATE SCHEMA whole
  CREATE TABLE t (id int)
  CREATE TRIGGER whole BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION public.streamfilter_discard('seen');
SELECT argument('whole');
CREATE SCHEMA wrong
  CREATE TABLE t (id int)
  CREATE TRIGGER wrong BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION public.streamfilter_discard('unseen');
DROP SCHEMA whole CASCADE;

-- ---- drop ----------------------------------------------------------------------------------------

DROP FOREIGN TABLE app."Seen Ids";
\echo SQLSTATE :LAST_ERROR_SQLSTATE
-- Replaced, the trigger means another filter, and depends on that.
CREATE OR REPLACE TRIGGER zz2 BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
DROP FOREIGN TABLE app."Seen Ids";
DROP FOREIGN TABLE seen;
INSERT INTO t VALUES (5), (5) RETURNING id;
DROP FOREIGN TABLE seen CASCADE;
SELECT argument('zz2');
INSERT INTO t VALUES (5), (5) RETURNING id;
-- It is in nobody's way: a table goes with its triggers.
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
DROP TABLE t;
DROP FOREIGN TABLE seen;

-- ---- partitions ----------------------------------------------------------------------------------

CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE p (k int, id int) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) PARTITION BY LIST (id);
CREATE TABLE p11 PARTITION OF p1 DEFAULT;
CREATE TABLE app.p2 (id int, k int);
CREATE TRIGGER zz BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
ALTER TABLE p ATTACH PARTITION app.p2 FOR VALUES IN (2);
ALTER FOREIGN TABLE seen RENAME TO seen_p;
SELECT argument('zz');
CREATE FOREIGN TABLE app.seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
INSERT INTO p VALUES (1, 1), (2, 1), (2, 2) RETURNING *;
INSERT INTO app.p2 VALUES (1, 2), (3, 2) RETURNING *;
INSERT INTO p11 VALUES (1, 3), (1, 4) RETURNING *;
-- One that leaves has no trigger any more; a new one has.
ALTER TABLE p DETACH PARTITION app.p2;
CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3);
ALTER FOREIGN TABLE seen_p RENAME TO seen;
SELECT argument('zz');
DROP FOREIGN TABLE seen;
DROP FOREIGN TABLE seen CASCADE;
SELECT argument('zz');
DROP TABLE p, app.p2;
DROP FOREIGN TABLE app.seen;

-- ---- created where no event trigger could see it -------------------------------------------------

-- Such a trigger is bound when it fires first …
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE app.t (id int);
ALTER EVENT TRIGGER streamfilter_check_ddl DISABLE;
CREATE TRIGGER zz BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
SELECT argument('zz');
BEGIN;
INSERT INTO app.t VALUES (1), (1) RETURNING id;
SELECT argument('zz');
ROLLBACK;
SELECT argument('zz');
INSERT INTO app.t VALUES (1), (1) RETURNING id;
INSERT INTO app.t VALUES (1), (2) RETURNING id;
SELECT argument('zz');
DROP FOREIGN TABLE seen;
-- … of whatever partition …
CREATE TABLE p (id int) PARTITION BY LIST (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2, 3);
CREATE TRIGGER zzp BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO p VALUES (1), (2), (3), (3) RETURNING id;
INSERT INTO p1 VALUES (1) RETURNING id;
SELECT argument('zzp');
DROP TABLE p;
-- … or by a function, which is for superusers.
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
CREATE TABLE t2 (id int);
CREATE TRIGGER zz BEFORE INSERT ON t2 FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('unseen');
ALTER EVENT TRIGGER streamfilter_check_ddl ENABLE;
SET ROLE streamfilter_mallory;
SELECT streamfilter_adopt_triggers();
RESET ROLE;
SELECT streamfilter_adopt_triggers();
SELECT streamfilter_adopt_triggers();
SELECT argument('zz');
DROP FOREIGN TABLE seen;
SELECT count(*) FROM pg_depend WHERE refobjid = 'seen'::regclass AND classid = 'pg_trigger'::regclass;
DROP TABLE app.t, t2;
DROP FOREIGN TABLE seen;

-- ---- a filter in the condition of a trigger is another one ---------------------------------------

CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FOREIGN TABLE known (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE t (id int);
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW WHEN (NOT streamfilter_test('known', NEW.id))
  EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO known VALUES (1);
INSERT INTO t VALUES (1), (1), (2), (2) RETURNING id;
DROP FOREIGN TABLE known;
DROP FOREIGN TABLE seen;
DROP TABLE t;
DROP FOREIGN TABLE seen, known;

DROP SCHEMA app, "Other";
DROP FUNCTION argument;
REVOKE ALL ON FOREIGN SERVER streamfilter FROM streamfilter_mallory;
REVOKE ALL ON SCHEMA public FROM streamfilter_mallory;
DROP ROLE streamfilter_mallory;
-- ---- RENAME COLUMN --------------------------------------------------------------------------------

-- A trigger goes on with the same columns, as an index does; its arguments say how they are called now.
CREATE TABLE named (id int, "Other" int, seen boolean, spare int) PARTITION BY LIST (id);
CREATE TABLE named_1 PARTITION OF named FOR VALUES IN (1);
CREATE TABLE named_repeats (id int, others int, "Known" boolean, "Other" int);
CREATE FOREIGN TABLE by_name (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
CREATE FOREIGN TABLE by_list (id int, other int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
CREATE TRIGGER za BEFORE INSERT ON named FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('by_list', 'SEEN', 'id', 'Other');
CREATE TRIGGER zb BEFORE INSERT ON named FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('by_name');
CREATE TRIGGER zc AFTER DELETE ON named FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('by_name');
ALTER TABLE named DISABLE TRIGGER zc;
CREATE VIEW arguments AS SELECT tgrelid::regclass AS of, tgname, tgnargs, replace(encode(tgargs, 'escape'), '\000', ' ') AS arguments
FROM pg_trigger WHERE tgrelid::regclass::text ~ '^named' ORDER BY 1, 2;
INSERT INTO named VALUES (1, 1);
ALTER TABLE named RENAME id TO number;
ALTER TABLE named RENAME "Other" TO others;
ALTER TABLE named RENAME seen TO "Known";
ALTER TABLE named ENABLE TRIGGER zc;
TABLE arguments;
INSERT INTO named VALUES (1, 1), (1, 2);
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'named'::regclass ORDER BY tgname;
-- The trigger takes columns of the filter's names again, and another column may have a former name.
ALTER TABLE named RENAME spare TO "Other";
ALTER TABLE named RENAME number TO id;
TABLE arguments;
DELETE FROM named;
INSERT INTO named VALUES (1, 1), (1, 2);
SELECT * FROM named;
-- Repeats go to columns of the same names: that one is to be renamed, too.
CREATE OR REPLACE TRIGGER za BEFORE INSERT ON named FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('by_list', 'named_repeats', 'id', 'others');
ALTER TABLE named RENAME others TO other;
ALTER TABLE named_repeats RENAME others TO other;
DROP TABLE named, named_repeats CASCADE;
DROP FOREIGN TABLE by_name, by_list;
DROP VIEW arguments;

-- ---- ATTACH PARTITION -----------------------------------------------------------------------------

-- Rows that were in the partition before have not come through the trigger.
CREATE TABLE parts (id int, part int) PARTITION BY LIST (part);
CREATE FOREIGN TABLE seen_parts (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
CREATE TRIGGER zz BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_parts');
CREATE TABLE part_1 AS SELECT i AS id, 1 AS part FROM generate_series(1, 100) i;
ALTER TABLE parts ATTACH PARTITION part_1 FOR VALUES IN (1);
SELECT streamfilter_warm('public.seen_parts', 'public.part_1');
INSERT INTO parts SELECT i, 1 FROM generate_series(1, 101) i;
ALTER TABLE parts DETACH PARTITION part_1;
ALTER TABLE parts ATTACH PARTITION part_1 FOR VALUES IN (1);
CREATE TABLE part_2 (LIKE parts);
ALTER TABLE parts ATTACH PARTITION part_2 FOR VALUES IN (2);
DROP TABLE parts;
DROP FOREIGN TABLE seen_parts;
