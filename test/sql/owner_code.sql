--
-- Code that the owner of a filter has chosen runs as the owner, whichever role gives the key; code that
-- comes with a value runs as the role that gives it
--
SET client_min_messages = warning;
CREATE ROLE streamfilter_mallory;
CREATE ROLE streamfilter_eve;
CREATE SCHEMA mallory AUTHORIZATION streamfilter_mallory;
CREATE SCHEMA eve AUTHORIZATION streamfilter_eve;
GRANT USAGE ON FOREIGN SERVER streamfilter TO streamfilter_mallory;

-- ---- Mallory makes filters that run code, and lets everybody use them ---------------------------

SET SESSION AUTHORIZATION streamfilter_mallory;
SET search_path = mallory, public;
CREATE TABLE ran (what text, as_role name);
-- Says as whom it runs, and tries to become the session's user again.
CREATE FUNCTION say(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ran VALUES (what, current_user);
  BEGIN
    EXECUTE 'RESET SESSION AUTHORIZATION';
    INSERT INTO ran VALUES ('escaped', current_user);
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  BEGIN
    EXECUTE 'SET ROLE NONE';
    INSERT INTO ran VALUES ('escaped', current_user);
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
END $$;
CREATE FUNCTION evil(int) RETURNS boolean LANGUAGE plpgsql
AS $$ BEGIN PERFORM say('check'); RETURN true; END $$;
CREATE FUNCTION evil_constant() RETURNS boolean LANGUAGE plpgsql IMMUTABLE
AS $$ BEGIN PERFORM say('constant'); RETURN true; END $$;
CREATE DOMAIN evil_int AS int CHECK (evil(VALUE)) CHECK (evil_constant());
CREATE TYPE evil_pair AS (a int, b text);
CREATE FUNCTION to_pair(int) RETURNS evil_pair LANGUAGE plpgsql
AS $$ BEGIN PERFORM say('cast'); RETURN ROW($1, 'x')::mallory.evil_pair; END $$;
CREATE CAST (int AS evil_pair) WITH FUNCTION to_pair(int) AS IMPLICIT;
CREATE FOREIGN TABLE checked (k evil_int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FOREIGN TABLE checked_list (k evil_int[]) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FOREIGN TABLE casting (k evil_pair) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FOREIGN TABLE weighed (k int, w evil_int OPTIONS (role 'importance'))
  SERVER streamfilter OPTIONS (kind 'ibf2c', memory '64kB', importance_levels '10');
CREATE TABLE checked_rows (k int, l int[]);
CREATE TRIGGER zz BEFORE INSERT ON checked_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('checked', 'k');
CREATE TABLE casting_rows (k int, again boolean);
CREATE TRIGGER zz BEFORE INSERT ON casting_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('casting', 'again', 'k');
CREATE TABLE weighed_rows (k int, w int);
CREATE TRIGGER zz BEFORE INSERT ON weighed_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('weighed');
GRANT ALL ON SCHEMA mallory TO PUBLIC;
GRANT ALL ON ALL TABLES IN SCHEMA mallory TO PUBLIC;
RESET SESSION AUTHORIZATION;

-- ---- a superuser uses them ----------------------------------------------------------------------

CREATE FUNCTION public.who_ran(OUT what text, OUT as_role name, OUT n bigint) RETURNS SETOF record
LANGUAGE sql AS $$
  WITH gone AS (DELETE FROM mallory.ran RETURNING *)
  SELECT what, as_role, count(*) FROM gone GROUP BY 1, 2 ORDER BY 1, 2;
$$;
SET search_path = mallory, public;
SELECT count(*) FROM who_ran();
\c -
SET client_min_messages = warning;
SET search_path = mallory, public;
INSERT INTO checked_rows VALUES (1), (1), (2) RETURNING k;
SELECT * FROM who_ran() WHERE what <> 'constant' OR as_role <> 'streamfilter_mallory';
INSERT INTO casting_rows VALUES (1), (1) RETURNING *;
SELECT * FROM who_ran();
INSERT INTO weighed_rows VALUES (1, 1), (1, 1) RETURNING *;
SELECT * FROM who_ran() WHERE what <> 'constant' OR as_role <> 'streamfilter_mallory';
COPY checked_rows (k) FROM stdin;
2
3
\.
SELECT * FROM who_ran();
SELECT streamfilter_seen('checked', 1), streamfilter_seen('checked', '1'), streamfilter_test('checked', 5);
SELECT * FROM who_ran();
SELECT streamfilter_test('checked_list', '{1,2}'), streamfilter_test('checked_list', '{1,2}'::int[]),
       streamfilter_test('checked_list', ARRAY[1]);
SELECT * FROM who_ran();
SELECT streamfilter_seen('casting', 2), streamfilter_test('casting', '(2,x)'), streamfilter_slice('casting', 2);
SELECT * FROM who_ran();
-- The batch scan.
SELECT k FROM checked_rows WHERE NOT streamfilter_seen('checked', k + 10) ORDER BY k;
SELECT * FROM who_ran();
-- Warming, and what only reads or keeps state
CREATE TABLE to_warm (k int, w int);
INSERT INTO to_warm SELECT i + 20, i FROM generate_series(1, 3) i;
SELECT streamfilter_warm('checked', 'to_warm', '{k}'), streamfilter_warm('casting', 'to_warm', '{k}'), streamfilter_warm('weighed', 'to_warm');
SELECT * FROM who_ran() WHERE what <> 'constant' OR as_role <> 'streamfilter_mallory';
INSERT INTO checked_rows SELECT i + 30 FROM generate_series(1, 20) i;
SELECT * FROM who_ran() WHERE as_role <> 'streamfilter_mallory';
SELECT streamfilter_save('checked');
DO $$ BEGIN EXECUTE 'EXPLAIN ANALYZE SELECT FROM checked WHERE k = 21'; END $$;
SELECT filter, error FROM streamfilter_stats WHERE filter = 'checked'::regclass;
SELECT count(*) FROM streamfilter_value('checked') v WHERE v @> 21;
SELECT distinct_rows FROM streamfilter_evaluate('SELECT k FROM to_warm', '{bloom(memory=1kB)}');
ALTER FOREIGN TABLE checked OPTIONS (ADD overfull 'discard');
ALTER FOREIGN TABLE checked OPTIONS (DROP overfull);
ANALYZE checked_rows;
SELECT * FROM who_ran();
DROP TABLE to_warm;
-- A trigger that is created, and statements that are planned and explained.
CREATE TABLE mine (k int);
CREATE TRIGGER zz BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('mallory.checked');
ALTER TABLE mine ADD x int;
SET streamfilter.batch_insert = on;
EXPLAIN (COSTS OFF) INSERT INTO mine SELECT 1 WHERE NOT streamfilter_test('checked', 1);
RESET streamfilter.batch_insert;
SELECT * FROM who_ran();
DROP TABLE mine;
-- Looking a key up runs no code of the owner.
SELECT * FROM checked WHERE k = 1;
SELECT * FROM who_ran();
-- What fails leaves nobody in another's skin.
CREATE DOMAIN public.small AS int CHECK (VALUE < 10);
CREATE FOREIGN TABLE seen_small (k small) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
ALTER FOREIGN TABLE seen_small OWNER TO streamfilter_mallory;
GRANT ALL ON seen_small TO PUBLIC;
SET search_path = mallory, public;
DO $$
BEGIN
  PERFORM streamfilter_seen('seen_small', 11);
EXCEPTION WHEN check_violation THEN
  RAISE WARNING '% %', current_user = session_user, current_setting('search_path');
END $$;
SELECT streamfilter_seen('seen_small', 11);
SELECT current_user = session_user, current_setting('search_path');
SELECT streamfilter_seen('seen_small', 9), current_user = session_user, current_setting('search_path');

-- ---- the other way round: nobody becomes the owner ----------------------------------------------

-- Functions that the owner's code calls are found in the schema of the filter, not in Eve's.
SET SESSION AUTHORIZATION streamfilter_eve;
SET search_path = eve, mallory, public, pg_catalog;
CREATE FUNCTION say(what text) RETURNS void LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO mallory.ran VALUES ('eve', current_user); END $$;
CREATE TEMP TABLE ran (what text, as_role name);
SET search_path = pg_temp, eve, mallory, public, pg_catalog;
SELECT streamfilter_seen('mallory.checked', 100);
TABLE pg_temp.ran;
-- Casts that Eve has made run as Eve …
CREATE TYPE eve.own AS (a int);
CREATE FUNCTION eve.to_int(eve.own) RETURNS int LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO mallory.ran VALUES ('eve', current_user); RETURN $1.a; END $$;
CREATE CAST (eve.own AS int) WITH FUNCTION eve.to_int(eve.own) AS IMPLICIT;
CREATE FUNCTION eve.to_pair(eve.own) RETURNS mallory.evil_pair LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO mallory.ran VALUES ('eve', current_user); RETURN ROW($1.a, 'y')::mallory.evil_pair; END $$;
CREATE CAST (eve.own AS mallory.evil_pair) WITH FUNCTION eve.to_pair(eve.own) AS IMPLICIT;
DISCARD TEMP;
SELECT streamfilter_test('mallory.weighed', ROW(1)::eve.own);
-- … or not at all: what they give to a column that has code of its own must be cast explicitly.
SELECT streamfilter_seen('mallory.casting', ROW(1)::eve.own);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT streamfilter_seen('mallory.checked', ROW(1)::eve.own);
SELECT streamfilter_seen('mallory.casting', ROW(1)::eve.own::mallory.evil_pair);
CREATE TABLE eve.rows (k eve.own);
CREATE TRIGGER zz BEFORE INSERT ON eve.rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('mallory.casting');
RESET SESSION AUTHORIZATION;
RESET search_path;
SELECT * FROM who_ran() WHERE what <> 'constant' OR as_role <> 'streamfilter_mallory';

-- ---- streamfilter_settle runs nothing as its caller -----------------------------------------------

SET search_path = mallory, public;
SET ROLE streamfilter_mallory;
CREATE TYPE kind AS ENUM ('1', '2');
CREATE FUNCTION kind_to_int(kind) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM say('cast'); RETURN 1; END $$;
CREATE CAST (kind AS int) WITH FUNCTION kind_to_int(kind) AS ASSIGNMENT;
CREATE TYPE day AS ENUM ('today');
CREATE FUNCTION time_of(day) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN PERFORM say('cast'); RETURN now(); END $$;
CREATE CAST (day AS timestamptz) WITH FUNCTION time_of(day) AS IMPLICIT;
CREATE TABLE kinds (k kind, l evil_int[], diverted_at day);
INSERT INTO kinds (k, diverted_at) VALUES ('1', 'today');
CREATE TABLE indexed (k int);
CREATE DOMAIN own_int AS int CHECK (VALUE > 0);
CREATE FOREIGN TABLE own_seen (k own_int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE own_rows (k int);
CREATE TABLE own_repeats (k int);
CREATE TRIGGER zz BEFORE INSERT ON own_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('own_seen', 'own_repeats');
INSERT INTO own_repeats VALUES (1);
CREATE FUNCTION evil_in_index() RETURNS boolean LANGUAGE plpgsql IMMUTABLE SET search_path = mallory, public
AS $$ BEGIN PERFORM say('index'); RETURN true; END $$;
CREATE INDEX ON indexed (k) WHERE evil_in_index();
CREATE FUNCTION say_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM say(TG_OP || ' ' || TG_TABLE_NAME); RETURN coalesce(NEW, OLD); END $$;
CREATE FUNCTION say_default() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM say('default'); RETURN 1; END $$;
CREATE TRIGGER says BEFORE DELETE ON indexed FOR EACH ROW EXECUTE FUNCTION say_row();
CREATE TABLE of_mallory (k int CHECK (evil(k)), d int DEFAULT say_default());
CREATE INDEX ON of_mallory (k) WHERE evil_in_index();
CREATE TRIGGER says AFTER INSERT OR DELETE ON of_mallory FOR EACH ROW EXECUTE FUNCTION say_row();
CREATE TABLE of_mallory_repeats (k int);
CREATE TRIGGER zz BEFORE INSERT ON of_mallory FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('checked', 'of_mallory_repeats', 'k');
CREATE TRIGGER says BEFORE DELETE ON of_mallory_repeats FOR EACH ROW EXECUTE FUNCTION say_row();
RESET ROLE;
INSERT INTO indexed VALUES (7);
INSERT INTO of_mallory_repeats VALUES (901), (901), (902);
CREATE DOMAIN outer_int AS evil_int;
CREATE FOREIGN TABLE seen_outer (k outer_int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
ALTER FOREIGN TABLE seen_outer OWNER TO streamfilter_mallory;
CREATE FOREIGN TABLE seen_plain (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE settled (k int, l int[], t text, w int);
CREATE TABLE repeats (LIKE settled);
INSERT INTO repeats VALUES (1, '{1}', '(1,x)', 1);
SELECT count(*) > 0 FROM who_ran();
-- Checks of a domain, in an array and below another domain; casts, also by the text of a value. First with a table of the owner,
-- whose triggers, defaults, constraints and indexes have code, too.
SELECT * FROM streamfilter_settle('of_mallory_repeats', 'of_mallory', duplicates => 'delete');
SELECT what, as_role FROM who_ran();
SELECT current_user = session_user;
CREATE TRIGGER zz BEFORE INSERT ON settled FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('checked', 'repeats', 'k');
SELECT * FROM streamfilter_settle('repeats', 'settled');
CREATE PROCEDURE add_repeats(i int) LANGUAGE sql AS $$
  INSERT INTO repeats VALUES (i, ARRAY[i], format('(%s,x)', i), i), (i, ARRAY[i], format('(%s,x)', i), i) $$;
CALL add_repeats(2);
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON settled FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('checked_list', 'repeats', 'l');
SELECT * FROM streamfilter_settle('repeats', 'settled');
CALL add_repeats(3);
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON settled FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_outer', 'repeats', 'k');
SELECT * FROM streamfilter_settle('repeats', 'settled');
CALL add_repeats(4);
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON settled FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('casting', 'repeats', 'k');
SELECT * FROM streamfilter_settle('repeats', 'settled', keep => true);
SELECT * FROM streamfilter_settle('repeats', 'settled', duplicates => 'report');
SELECT what, as_role FROM who_ran() WHERE what <> 'constant' OR as_role <> 'streamfilter_mallory';
-- The types of diverted rows: of the key, of what else moves, of the time; an index
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON settled FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_plain', 'repeats', 'k');
SELECT * FROM streamfilter_settle('kinds', 'settled', '{k}');
ALTER TABLE kinds ALTER k TYPE int USING 1;
SELECT * FROM streamfilter_settle('kinds', 'settled', '{k}');
ALTER TABLE kinds DROP l;
SELECT * FROM streamfilter_settle('kinds', 'settled', '{k}', since => now());
SELECT * FROM streamfilter_settle('indexed', 'settled', '{k}');
SELECT * FROM who_ran() WHERE as_role <> 'streamfilter_mallory';
-- What is compared as it is runs no code. What a key weighs is cast for the filter only, as its owner.
CALL add_repeats(5);
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON settled FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('weighed', 'repeats', 'k', 'w');
SELECT * FROM streamfilter_settle('repeats', 'settled');
SELECT * FROM who_ran() WHERE what = 'check';
DROP TRIGGER zz ON settled;
ALTER TABLE settled ALTER k TYPE evil_int, ADD e kind;
ALTER TABLE repeats ALTER k TYPE evil_int, ADD e kind;
CREATE TRIGGER zz BEFORE INSERT ON settled FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('checked', 'repeats', 'k');
INSERT INTO repeats (k, e) VALUES (6, '1'), (6, '2');
SELECT count(*) > 0 FROM who_ran();
SELECT * FROM streamfilter_settle('repeats', 'settled', duplicates => 'delete');
DROP TRIGGER zz ON settled;
SELECT * FROM streamfilter_settle('repeats', 'settled', '{e}', duplicates => 'report');
SELECT * FROM who_ran();
-- Who has chosen it may run it.
SET ROLE streamfilter_mallory;
SELECT * FROM streamfilter_settle('own_repeats', 'own_rows');
RESET ROLE;
DROP PROCEDURE add_repeats;
DROP TABLE settled, repeats;
DROP FOREIGN TABLE seen_outer, seen_plain;
DROP DOMAIN outer_int;
RESET search_path;

-- ---- hash functions of types --------------------------------------------------------------------

CREATE TYPE number;
CREATE FUNCTION number_in(cstring) RETURNS number LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
CREATE FUNCTION number_out(number) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
CREATE TYPE number (INPUT = number_in, OUTPUT = number_out, LIKE = int8);
CREATE FUNCTION number_eq(number, number) RETURNS boolean LANGUAGE plpgsql STRICT AS $$
BEGIN
  INSERT INTO mallory.ran VALUES ('equality', current_user);
  RETURN $1::text = $2::text;
END $$;
CREATE FUNCTION number_hash(number) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint8';
CREATE FUNCTION number_hash_extended(number, bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO mallory.ran VALUES ('hash', current_user);
  RETURN hashtextextended($1::text, $2);
END $$;
CREATE OPERATOR = (LEFTARG = number, RIGHTARG = number, FUNCTION = number_eq, COMMUTATOR = =, HASHES);
CREATE OPERATOR CLASS number_ops DEFAULT FOR TYPE number USING hash AS
  OPERATOR 1 =, FUNCTION 1 number_hash(number), FUNCTION 2 number_hash_extended(number, bigint);
CREATE FOREIGN TABLE seen_numbers (k number) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FOREIGN TABLE seen_number_lists (k number[]) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
ALTER FOREIGN TABLE seen_numbers OWNER TO streamfilter_mallory;
ALTER FOREIGN TABLE seen_number_lists OWNER TO streamfilter_mallory;
CREATE TABLE numbers (k number);
CREATE TRIGGER zz BEFORE INSERT ON numbers FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_numbers');
INSERT INTO numbers VALUES ('1'), ('1') RETURNING k;
INSERT INTO seen_numbers VALUES ('2'), ('3');
SELECT streamfilter_test('seen_numbers', '2');
SELECT * FROM seen_numbers WHERE k = '3';
SELECT streamfilter_seen('seen_number_lists', '{1,2}');
SELECT * FROM who_ran();
-- Look-ups in the table's own index run as the table's owner, all else as the filter's.
CREATE TABLE number_repeats (LIKE numbers);
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON numbers FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_numbers', 'number_repeats');
INSERT INTO number_repeats VALUES ('1'), ('7'), ('7');
SELECT restored, confirmed, duplicates FROM streamfilter_settle('number_repeats', 'numbers', duplicates => 'delete');
SELECT what, as_role FROM who_ran();

-- Warming, plans, statistics, images and other sizes: as the filter's owner, or none at all. What counts or compares rows of the
-- caller's own query runs as the caller.
SET client_min_messages = error;
SELECT streamfilter_warm('seen_numbers', 'numbers') >= 0;
DO $$ BEGIN
  EXECUTE 'EXPLAIN SELECT FROM numbers WHERE NOT streamfilter_seen(''seen_numbers'', k)';
  EXECUTE 'EXPLAIN ANALYZE INSERT INTO numbers SELECT k FROM numbers';
  EXECUTE 'EXPLAIN SELECT * FROM seen_numbers WHERE k = ''3''';
END $$;
SELECT streamfilter_save('seen_numbers');
ALTER FOREIGN TABLE seen_numbers OPTIONS (SET keys '3000');
SELECT count(*) FROM streamfilter_value('seen_numbers');
SELECT what, as_role FROM who_ran() WHERE as_role <> 'streamfilter_mallory';
CREATE FUNCTION pg_temp.who_called() RETURNS TABLE (what text, is_caller boolean) LANGUAGE sql
  AS $$ SELECT DISTINCT what, as_role = session_user FROM who_ran() ORDER BY 1, 2 $$;
SELECT count(*) > 0 FROM streamfilter_distinct(NULL::numbers, 'SELECT k FROM numbers', 'bloom(memory=1kB)');
SELECT * FROM pg_temp.who_called();
SELECT approx_count_distinct(k) > 0 FROM numbers;
SELECT * FROM pg_temp.who_called();
SET client_min_messages = warning;

-- ---- the check of a domain that drops it ---------------------------------------------------------

CREATE FUNCTION drop_domain(int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF $1 = 13 THEN DROP DOMAIN brittle CASCADE; END IF;
  RETURN true;
END $$;
CREATE DOMAIN brittle AS int CHECK (drop_domain(VALUE));
CREATE FOREIGN TABLE seen_brittle (k brittle) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
CREATE FOREIGN TABLE seen_plain (k int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
BEGIN;
SELECT streamfilter_seen('seen_brittle', 13);
ROLLBACK;
INSERT INTO seen_brittle VALUES (13);
SELECT streamfilter_seen('seen_plain', i::brittle) FROM (VALUES (13)) v(i);
SELECT streamfilter_agg(i::brittle, 'clq(memory=1kB)') FROM (VALUES (13)) v(i);
SELECT approx_count_distinct(i::brittle) FROM (VALUES (13)) v(i);
SELECT streamfilter_contains('clq(memory=1kB)', i::brittle) FROM (VALUES (13)) v(i);
SELECT streamfilter_slice_of(i::brittle, 4) FROM (VALUES (13)) v(i);
SELECT streamfilter_hash(i::brittle) FROM (VALUES (13)) v(i);
SELECT streamfilter_slice('seen_plain', i::brittle) FROM (VALUES (13)) v(i);
BEGIN;
SELECT * FROM seen_plain WHERE k = (SELECT i::brittle FROM (VALUES (13)) v(i));
ROLLBACK;
BEGIN;
SELECT rows FROM streamfilter_evaluate('SELECT i::brittle FROM (VALUES (13)) v(i)', '{clq(memory=1kB)}');
ROLLBACK;
DROP FOREIGN TABLE seen_brittle, seen_plain;
DROP DOMAIN brittle;
DROP FUNCTION drop_domain;

-- ---- clean up -----------------------------------------------------------------------------------
DROP TABLE numbers, number_repeats;
RESET search_path;
DROP FOREIGN TABLE seen_numbers, seen_number_lists, mallory.seen_small;
DROP DOMAIN small;
DROP TYPE number CASCADE;
DROP FUNCTION who_ran;
DROP SCHEMA mallory, eve CASCADE;
REVOKE ALL ON FOREIGN SERVER streamfilter FROM streamfilter_mallory;
DROP ROLE streamfilter_mallory, streamfilter_eve;
