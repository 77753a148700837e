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
