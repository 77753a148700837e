--
-- ALTER TYPE ... RENAME VALUE of enums that filters remember by their labels
--

\set VERBOSITY terse
SET client_min_messages = warning;
CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
CREATE TYPE other AS ENUM ('a', 'b');
CREATE DOMAIN feeling AS mood;
CREATE DOMAIN feelings AS feeling[];
CREATE TYPE person AS (name text, moods mood[]);
CREATE TYPE mood_range AS RANGE (subtype = mood);
CREATE TYPE people AS (ranges mood_range[], more person[]);
CREATE DOMAIN crowd AS people;

-- What RENAME VALUE says while the filter has a column of this type.
CREATE FUNCTION refused(type text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE seen (id int, k %s) SERVER streamfilter OPTIONS (memory ''64kB'')', type);
  BEGIN
    ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy';
    RETURN 'renamed';
  EXCEPTION WHEN feature_not_supported THEN
    DROP FOREIGN TABLE seen;
    RETURN SQLERRM;
  END;
END $$;
SELECT type, refused(type) FROM unnest('{mood,feeling,mood[],mood[][],feelings,person,person[],mood_range,
  mood_multirange,mood_range[],people,crowd,crowd[]}'::text[]) type;

-- Another enum, or none: as ever.
CREATE FOREIGN TABLE seen (id int, k other, p int4multirange) SERVER streamfilter OPTIONS (memory '64kB');
ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy';
ALTER TYPE mood RENAME VALUE 'unhappy' TO 'sad';
DROP FOREIGN TABLE seen;

-- The message, and what it says to type.
CREATE SCHEMA enum_labels;
CREATE FOREIGN TABLE enum_labels.seen (id int, "the mood" mood) SERVER streamfilter OPTIONS (memory '64kB');
CREATE TABLE events (id int, m mood, note mood);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('enum_labels.seen', 'id', 'm');
INSERT INTO events VALUES (1, 'it''s ok');
\set VERBOSITY default
ALTER TYPE mood RENAME VALUE 'it''s ok' TO 'it''s fine';
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER TYPE mood ADD VALUE 'it''s fine' AFTER 'it''s ok';
INSERT INTO events VALUES (1, 'it''s fine'), (1, 'it''s ok');
SELECT * FROM events ORDER BY m;
SELECT enum_range(NULL::mood);

-- PostgreSQL's own errors come first.
\set VERBOSITY terse
ALTER TYPE mood RENAME VALUE 'glad' TO 'happy';
ALTER TYPE mood RENAME VALUE 'sad' TO 'it''s ok';
ALTER TYPE feeling RENAME VALUE 'sad' TO 'unhappy';
ALTER TYPE nothing RENAME VALUE 'sad' TO 'unhappy';
CREATE ROLE enum_stranger;
SET ROLE enum_stranger;
ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy';
RESET ROLE;

-- In a function, under a qualified name, by a path that does not have the type's schema.
SET search_path = pg_catalog;
DO $$ BEGIN EXECUTE 'ALTER TYPE public.mood RENAME VALUE ''sad'' TO ''unhappy'''; END $$;
RESET search_path;

-- Without the filter, also in one transaction.
BEGIN;
DROP FOREIGN TABLE enum_labels.seen CASCADE;
ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy';
ROLLBACK;
ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy';
DROP FOREIGN TABLE enum_labels.seen CASCADE;
ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy';

-- A key of text that a trigger casts from the enum: labels, too.
CREATE CAST (mood AS text) WITH INOUT AS IMPLICIT;
CREATE FOREIGN TABLE seen (id int, m text) SERVER streamfilter OPTIONS (memory '64kB');
ALTER TYPE mood RENAME VALUE 'unhappy' TO 'sad';
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
\set VERBOSITY default
ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy';
DROP CAST (mood AS text);
DROP TRIGGER zz ON events;
-- A column of the table that is not part of the key.
CREATE TABLE jobs (id int, m text, state mood);
CREATE TRIGGER zz BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
ALTER TYPE mood RENAME VALUE 'sad' TO 'unhappy';

DROP TABLE events, jobs;
DROP FOREIGN TABLE seen;
DROP SCHEMA enum_labels;
DROP FUNCTION refused;
DROP TYPE people, person, mood_range, other CASCADE;
DROP TYPE mood CASCADE;
DROP ROLE enum_stranger;
