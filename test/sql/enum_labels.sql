--
-- Keys whose types are altered. A value of an enum stays the same when its label is renamed, and one that is added under a
-- former label is new.
--

\set VERBOSITY terse
SET client_min_messages = warning;
CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
CREATE DOMAIN feeling AS mood;
CREATE DOMAIN feelings AS feeling[];
CREATE TYPE person AS (name text, moods mood[]);
CREATE TYPE mood_range AS RANGE (subtype = mood);

-- What a table with a unique index would do, and what the filter does.
CREATE TABLE events (id int, m mood, a feelings, p person, r mood_range, f feeling);
CREATE FOREIGN TABLE seen (id int, m mood, a feelings, p person, r mood_range, f feeling) SERVER streamfilter OPTIONS (memory '64kB');
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
CREATE FUNCTION arrives(label text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE m mood := label; rows bigint;
BEGIN
  INSERT INTO events VALUES (1, m, ARRAY[m, NULL], ROW('x', ARRAY[m]), mood_range(m, m, '[]'), m);
  GET DIAGNOSTICS rows = ROW_COUNT;
  RETURN CASE rows WHEN 1 THEN 'new' ELSE 'repeat' END;
END $$;
SELECT arrives('sad'), arrives('sad');
ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy';
SELECT arrives('unhappy');
SELECT label FROM pg_seclabels WHERE objtype = 'type';

-- The former label, used again: by RENAME, and by ADD.
ALTER TYPE mood RENAME VALUE 'it''s ok' TO 'sad';
SELECT arrives('sad'), arrives('sad'), arrives('unhappy');
ALTER TYPE mood ADD VALUE 'it''s ok';
SELECT arrives('it''s ok'), arrives('it''s ok'), arrives('sad');
ALTER TYPE mood RENAME VALUE 'it''s ok' TO 'a, "b" {c}';
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'a, "b" {c}';
ALTER TYPE mood ADD VALUE 'it''s ok';
SELECT arrives('it''s ok'), arrives('it''s ok'), arrives('a, "b" {c}');
-- A value that was never added is new, whatever it was called at its birth.
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'unhappy';
ALTER TYPE mood ADD VALUE 'other';
SELECT arrives('other');
SELECT count(*), count(DISTINCT m), count(DISTINCT (m, a, p, r, f)) FROM events;
SELECT label FROM pg_seclabels WHERE objtype = 'type';
-- Back to the labels of birth.
ALTER TYPE mood RENAME VALUE 'it''s ok' TO 'gone';
ALTER TYPE mood RENAME VALUE 'sad' TO 'it''s ok';
ALTER TYPE mood RENAME VALUE 'unhappy' TO 'sad';
SELECT arrives('sad'), arrives('it''s ok'), arrives('gone'), arrives('other');

-- In one transaction, with savepoints, and rolled back.
BEGIN;
ALTER TYPE mood RENAME VALUE 'sad' TO 'x';
SELECT arrives('x');
SAVEPOINT s;
ALTER TYPE mood RENAME VALUE 'x' TO 'y';
SELECT arrives('y');
ROLLBACK TO s;
SELECT arrives('x');
ROLLBACK;
SELECT arrives('sad');

-- Values of type streamfilter.
CREATE TYPE color AS ENUM ('red', 'green');
CREATE TABLE held AS SELECT streamfilter_agg(c, 'bloom(keys=100)') AS f FROM (VALUES ('red'::color)) v (c);
ALTER TYPE color RENAME VALUE 'red' TO 'rouge';
ALTER TYPE color RENAME VALUE 'green' TO 'red';
SELECT f @> 'rouge'::color AS rouge, f @> 'red'::color AS red FROM held;

-- By a qualified name, in a function, with a path that does not have the type's schema; PostgreSQL's own errors.
SET search_path = pg_catalog;
DO $$ BEGIN EXECUTE 'ALTER TYPE public.color RENAME VALUE ''rouge'' TO ''rosso'''; END $$;
RESET search_path;
SELECT f @> 'rosso'::color AS rosso FROM held;
ALTER TYPE color RENAME VALUE 'blue' TO 'blau';
ALTER TYPE feeling RENAME VALUE 'sad' TO 'unhappy';
ALTER TYPE nothing RENAME VALUE 'sad' TO 'unhappy';
DROP TYPE color;
SELECT label FROM pg_seclabels WHERE objtype = 'type' AND objname = 'color';

-- Security labels are ours, but for what a dump brings back.
\set VERBOSITY default
SECURITY LABEL FOR streamfilter ON TYPE mood IS 'sad,ok';
\set VERBOSITY terse
SECURITY LABEL FOR streamfilter ON TABLE events IS 'secret';
SET check_function_bodies = off;
SECURITY LABEL FOR streamfilter ON TYPE mood IS 'sad';
SECURITY LABEL FOR streamfilter ON TYPE mood IS '"sad';
SECURITY LABEL FOR streamfilter ON TYPE mood IS NULL;
RESET check_function_bodies;

-- Keys that other servers hash, too.
CREATE SERVER elsewhere FOREIGN DATA WRAPPER streamfilter OPTIONS (host 'nowhere');
CREATE TYPE level AS ENUM ('low', 'high');
CREATE FOREIGN TABLE far (l level) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', servers 'elsewhere', seed '1');
ALTER TYPE level ADD VALUE 'higher';
\set VERBOSITY default
ALTER TYPE level RENAME VALUE 'low' TO 'lower';
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP FOREIGN TABLE far;
ALTER TYPE level RENAME VALUE 'low' TO 'lower';
CREATE FOREIGN TABLE far (l level[]) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', servers 'elsewhere', seed '1');
CREATE FOREIGN TABLE near (l level[]) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', seed '1');

-- Rows within a key: another column makes other keys.
ALTER TYPE person ADD ATTRIBUTE age int;
\set VERBOSITY terse
ALTER TYPE person DROP ATTRIBUTE name;
ALTER TYPE person RENAME ATTRIBUTE age TO years;
CREATE TABLE rows_of (id int);
CREATE FOREIGN TABLE seen_rows (r rows_of) SERVER streamfilter OPTIONS (memory '64kB');
ALTER TABLE rows_of ADD COLUMN note text;
ALTER TABLE rows_of ADD CHECK (id > 0);

-- Another operator class: other hashes. A domain changes nothing.
CREATE TYPE code;
CREATE FUNCTION code_in(cstring) RETURNS code LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION code_out(code) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE code (INPUT = code_in, OUTPUT = code_out, LIKE = int4);
CREATE FUNCTION code_eq(code, code) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE OPERATOR = (LEFTARG = code, RIGHTARG = code, FUNCTION = code_eq, HASHES);
CREATE FUNCTION code_hash(code) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint4';
CREATE OPERATOR CLASS code_ops DEFAULT FOR TYPE code USING hash AS OPERATOR 1 =, FUNCTION 1 code_hash(code);
CREATE DOMAIN short_code AS code;
CREATE FOREIGN TABLE seen_codes (c short_code) SERVER streamfilter OPTIONS (memory '64kB');
SELECT streamfilter_seen('seen_codes', '1');
ALTER DOMAIN short_code SET DEFAULT '7';
ALTER DOMAIN short_code ADD CHECK (VALUE::text <> '8') NOT VALID;
SELECT streamfilter_seen('seen_codes', '1');
DROP OPERATOR CLASS code_ops USING hash;
\set VERBOSITY default
CREATE OPERATOR CLASS other_ops DEFAULT FOR TYPE code USING hash AS OPERATOR 1 =, FUNCTION 1 code_hash(code);
DROP FOREIGN TABLE seen_codes;
\set VERBOSITY terse

-- An empty label is one, too.
CREATE TYPE answer AS ENUM ('', 'yes');
CREATE FOREIGN TABLE seen_answers (a answer) SERVER streamfilter OPTIONS (memory '64kB');
SELECT streamfilter_seen('seen_answers', answer ''), streamfilter_seen('seen_answers', answer '');
ALTER TYPE answer RENAME VALUE '' TO 'no';
ALTER TYPE answer ADD VALUE '';
SELECT streamfilter_seen('seen_answers', answer 'no');
SELECT streamfilter_seen('seen_answers', answer '');
DROP FOREIGN TABLE seen_answers;
DROP TYPE answer;

DROP TABLE events, held;
DROP FOREIGN TABLE seen, seen_rows, near;
DROP TABLE rows_of;
DROP FUNCTION arrives;
DROP SERVER elsewhere CASCADE;
DROP TYPE level, mood_range, person, code CASCADE;
DROP TYPE mood CASCADE;
