--
-- What is not ours is as it was, and nobody without rights is in anybody's way.
--
CREATE SCHEMA guest;
SET search_path = guest, public;
GRANT USAGE ON SCHEMA guest TO PUBLIC;
CREATE FUNCTION bound_to(trigger name) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT tgrelid::regclass || ': ' || CASE tgconstrrelid WHEN 0 THEN 'not bound' ELSE tgconstrrelid::regclass::text END
    || ', dependencies: ' || (SELECT count(*) FROM pg_depend d WHERE d.classid = 'pg_trigger'::regclass
         AND d.objid = t.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> t.tgrelid)
  FROM pg_trigger t WHERE tgname = trigger ORDER BY 1;
$$;

-- ---- objects of others ---------------------------------------------------------------------------

-- A constraint trigger of others keeps no table from being dropped.
CREATE FUNCTION do_nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TABLE a (id int);
CREATE TABLE b (id int);
CREATE CONSTRAINT TRIGGER c AFTER INSERT ON a FROM b FOR EACH ROW EXECUTE FUNCTION do_nothing();
BEGIN;
DROP TABLE a, b;
ROLLBACK;
DROP TABLE b;
DROP TABLE a;
-- Servers of other wrappers have options of their own.
CREATE FOREIGN DATA WRAPPER other;
CREATE SERVER other FOREIGN DATA WRAPPER other OPTIONS (fetch_size '10');
ALTER SERVER other OPTIONS (SET fetch_size '20', ADD max_filters 'none');
ALTER SERVER other RENAME TO another;
DROP SERVER another;
DROP FOREIGN DATA WRAPPER other;

-- ---- a trigger needs rights of its table's owner -------------------------------------------------

CREATE ROLE guest_owner;
CREATE ROLE guest_stranger;
CREATE ROLE guest_member IN ROLE guest_stranger;
CREATE SCHEMA private AUTHORIZATION guest_owner;
CREATE SCHEMA his AUTHORIZATION guest_stranger;
GRANT USAGE ON FOREIGN SERVER streamfilter TO guest_owner;
SET ROLE guest_owner;
CREATE FOREIGN TABLE private.seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE private.repeats (id int);
SET ROLE guest_stranger;
CREATE TABLE his.t (id int);
CREATE TABLE his.repeats (id int);
CREATE TRIGGER zz BEFORE INSERT ON his.t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('private.seen');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SET ROLE guest_owner;
GRANT INSERT ON private.seen TO guest_stranger;
SET ROLE guest_stranger;
-- The right on the filter without that on its schema.
CREATE TRIGGER zz BEFORE INSERT ON his.t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('private.seen');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SET ROLE guest_owner;
GRANT USAGE ON SCHEMA private TO guest_stranger;
SET ROLE guest_stranger;
CREATE TRIGGER zz BEFORE INSERT ON his.t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('private.seen');
SELECT guest.bound_to('zz');
INSERT INTO his.t VALUES (1), (1) RETURNING id;
-- The table that repeats are diverted to is somebody's, too.
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON his.t
  FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('private.seen', 'private.repeats');
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON his.t
  FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('private.seen', 'his.repeats');
-- A role's rights are its members'.
SET ROLE guest_member;
CREATE TABLE pg_temp.t (id int);
CREATE TRIGGER zz_member BEFORE INSERT ON pg_temp.t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('private.seen');
DROP TABLE pg_temp.t;
RESET ROLE;

-- ---- a definition has all rights -----------------------------------------------------------------

CREATE FOREIGN TABLE "its rights" (id int, "more or less" text)
  SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6', seed '1');
GRANT INSERT, SELECT ON "its rights" TO guest_stranger;
GRANT DELETE ON "its rights" TO guest_stranger WITH GRANT OPTION;
GRANT SELECT (id), INSERT ("more or less") ON "its rights" TO guest_owner;
GRANT INSERT (id) ON "its rights" TO guest_owner WITH GRANT OPTION;
GRANT SELECT ON "its rights" TO PUBLIC;
SELECT command FROM regexp_split_to_table(streamfilter_definition('"its rights"'), E';\\s*') AS command
WHERE command LIKE 'GRANT%';
DROP FOREIGN TABLE "its rights";

-- ---- restoring: the right may come later ---------------------------------------------------------

REVOKE USAGE ON SCHEMA private FROM guest_stranger;
SET check_function_bodies = off;
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON his.t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('private.seen');
RESET check_function_bodies;
SELECT bound_to('zz');
INSERT INTO his.t VALUES (2);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT streamfilter_adopt_triggers();
GRANT USAGE ON SCHEMA private TO guest_stranger;
INSERT INTO his.t VALUES (2), (2) RETURNING id;
SELECT bound_to('zz');

-- ---- an owner's DDL ------------------------------------------------------------------------------

-- A column that the trigger no longer finds is the other's mistake.
ALTER EVENT TRIGGER streamfilter_check_ddl DISABLE;
ALTER TABLE his.t RENAME id TO number;
ALTER EVENT TRIGGER streamfilter_check_ddl ENABLE;
SET ROLE guest_owner;
ALTER FOREIGN TABLE private.seen OPTIONS (SET keys '2000');
RESET ROLE;
ALTER FOREIGN TABLE private.seen OPTIONS (SET keys '1000');
-- One's own mistake is refused as before.
ALTER EVENT TRIGGER streamfilter_check_ddl DISABLE;
ALTER TABLE his.t OWNER TO guest_owner;
ALTER EVENT TRIGGER streamfilter_check_ddl ENABLE;
SET ROLE guest_owner;
ALTER FOREIGN TABLE private.seen OPTIONS (SET keys '2000');
RESET ROLE;
ALTER TABLE his.t RENAME number TO id;
ALTER TABLE his.t OWNER TO guest_stranger;
ALTER FOREIGN TABLE private.seen RENAME TO known;
SELECT encode(tgargs, 'escape') FROM pg_trigger WHERE tgname = 'zz';
ALTER FOREIGN TABLE private.known RENAME TO seen;
-- Without the right, nobody is told of the other's triggers.
REVOKE INSERT ON private.seen FROM guest_stranger;
ALTER FOREIGN TABLE private.seen ADD COLUMN more int, OPTIONS (SET keys '2000');
ALTER FOREIGN TABLE private.seen DROP COLUMN more;
ALTER FOREIGN TABLE private.seen OWNER TO CURRENT_USER;
ALTER FOREIGN TABLE private.seen OWNER TO guest_owner;
-- While he has it, his trigger needs the filter.
GRANT INSERT ON private.seen TO guest_stranger;
SET ROLE guest_owner;
DROP FOREIGN TABLE private.seen;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
REVOKE INSERT ON private.seen FROM guest_stranger;
BEGIN;
DROP FOREIGN TABLE private.seen;
SELECT guest.bound_to('zz');
ROLLBACK;
SELECT guest.bound_to('zz');
-- Likewise of the table that repeats go to.
GRANT INSERT ON private.seen, private.repeats TO guest_stranger;
SET ROLE guest_stranger;
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON his.t
  FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('private.seen', 'private.repeats');
SELECT guest.bound_to('zz');
SET ROLE guest_owner;
REVOKE INSERT ON private.repeats FROM guest_stranger;
RESET ROLE;
ALTER TABLE private.repeats OWNER TO CURRENT_USER;
ALTER TABLE private.repeats RENAME COLUMN id TO number;
ALTER TABLE private.repeats ADD COLUMN more int;
DROP TABLE private.repeats;
SELECT bound_to('zz');
SET ROLE guest_stranger;
INSERT INTO his.t VALUES (5), (5);
RESET ROLE;

-- A filter below it, of one who has no right any more.
GRANT SELECT, INSERT ON private.seen TO guest_stranger;
GRANT USAGE ON FOREIGN SERVER streamfilter TO guest_stranger;
SET ROLE guest_stranger;
CREATE FOREIGN TABLE his.below (id int)
  SERVER streamfilter OPTIONS (kind 'bloom', keys '2000', fpr '1e-6', parent 'private.seen');
SET ROLE guest_owner;
DROP FOREIGN TABLE private.seen;
REVOKE SELECT, INSERT ON private.seen FROM guest_stranger;
BEGIN;
DROP FOREIGN TABLE private.seen;
ROLLBACK;
RESET ROLE;
DROP FOREIGN TABLE his.below;

DROP TABLE his.t, his.repeats;
DROP FOREIGN TABLE private.seen;
DROP SCHEMA private, his;
REVOKE USAGE ON FOREIGN SERVER streamfilter FROM guest_owner, guest_stranger;
DROP ROLE guest_member, guest_owner, guest_stranger;
RESET search_path;
DROP SCHEMA guest CASCADE;
