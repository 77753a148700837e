--
-- streamfilter_divert: repeats go to another table, in the same transaction
--
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE events (n int, id int, note text);
CREATE TABLE repeats (LIKE events, diverted_at timestamptz, filter regclass);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
INSERT INTO events VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, NULL, 'd'), (5, NULL, 'e');
INSERT INTO events VALUES (6, 2, 'f'), (7, 3, 'g') RETURNING n;
TABLE events;
SELECT n, id, note, diverted_at = now() AS now, diverted_at > now() - interval '1 hour' AS recent, filter FROM repeats;
-- COPY, INSERT ... SELECT, a prepared statement, MERGE
COPY events FROM stdin;
8	3	h
9	4	i
\.
INSERT INTO events SELECT 10 + i, 4 + i % 2, 'j' FROM generate_series(0, 3) AS i;
PREPARE add(int) AS INSERT INTO events VALUES ($1, 5, 'k');
EXECUTE add(14);
EXECUTE add(15);
MERGE INTO events USING (VALUES (16, 5), (17, 6)) AS s(n, id) ON events.n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.n, s.id, 'l');
SELECT n FROM events ORDER BY n;
SELECT n FROM repeats ORDER BY n;
-- Savepoints and ROLLBACK take both along.
BEGIN;
SAVEPOINT s;
INSERT INTO events VALUES (20, 7, 'm'), (21, 7, 'n');
ROLLBACK TO s;
INSERT INTO events VALUES (22, 7, 'o'), (23, 7, 'p');
SELECT n FROM repeats WHERE n >= 20;
ROLLBACK;
INSERT INTO events VALUES (24, 7, 'q') RETURNING n;
SELECT n FROM repeats WHERE n >= 20;
-- A false positive is brought back.
BEGIN;
SET LOCAL streamfilter.enabled = off;
WITH back AS (DELETE FROM repeats WHERE n = 15 RETURNING n, id, note) INSERT INTO events SELECT * FROM back;
COMMIT;
SELECT n FROM events WHERE n = 15;
SET streamfilter.mode = 'off';
INSERT INTO events SELECT 100 + n, id, note FROM repeats WHERE n < 10;
SET streamfilter.mode = 'shadow';
INSERT INTO events SELECT 200 + n, id, note FROM repeats WHERE n < 10;
RESET streamfilter.mode;
SELECT discarded, would_discard, diverted, lost_estimate < 1e-3 AS none_lost FROM streamfilter_stats WHERE filter = 'seen'::regclass;
SELECT rows, discarded, diverted FROM streamfilter_triggers WHERE filter = 'seen'::regclass;
DELETE FROM events WHERE n > 100;

-- What the trigger means, it keeps: names are followed, the table is not dropped under it.
ALTER TABLE repeats RENAME TO "Repeated events";
CREATE SCHEMA elsewhere;
ALTER TABLE "Repeated events" SET SCHEMA elsewhere;
CREATE TABLE repeats (LIKE events);
SELECT encode(tgargs, 'escape'), tgconstrrelid::regclass, tgconstrindid::regclass FROM pg_trigger WHERE tgname = 'zz';
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'zz';
INSERT INTO events VALUES (30, 1, 'r');
ALTER SCHEMA elsewhere RENAME TO nowhere;
INSERT INTO events VALUES (31, 1, 's');
SELECT n FROM nowhere."Repeated events" WHERE n >= 30;
DROP TABLE nowhere."Repeated events";
DROP FOREIGN TABLE seen;
-- Columns come and go.
ALTER TABLE events ADD COLUMN more text DEFAULT 'more';
INSERT INTO events VALUES (32, 1, 't');
ALTER TABLE nowhere."Repeated events" ADD COLUMN more text, DROP COLUMN note, ADD COLUMN late int DEFAULT 3;
INSERT INTO events VALUES (33, 1, 'u');
ALTER TABLE events DROP COLUMN n;
SELECT n, id, more, late FROM nowhere."Repeated events" WHERE n >= 32;
INSERT INTO events (id) VALUES (1);
SELECT n, id, more, late FROM nowhere."Repeated events" WHERE n IS NULL;
ALTER TABLE nowhere."Repeated events" ALTER id TYPE inet USING NULL;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP TABLE nowhere."Repeated events" CASCADE;
INSERT INTO events (id) VALUES (1);
SELECT count(*) FROM events WHERE id = 1;
DROP TABLE events, repeats;

-- Statements on a table are atomic: an error of the other table fails them.
CREATE TABLE events (id int, n int);
CREATE TABLE repeats (id int, n int CHECK (n > 0), filter text, seen_at timestamptz DEFAULT 'epoch');
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
\set SHOW_CONTEXT never
INSERT INTO events VALUES (100, 1), (100, 0);
\set SHOW_CONTEXT errors
INSERT INTO events VALUES (100, 2), (100, 3);
TABLE events;
TABLE repeats;
-- A quarantine that does not keep what it is given.
CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER drop_it BEFORE INSERT ON repeats FOR EACH ROW EXECUTE FUNCTION drop_it();
INSERT INTO events VALUES (100, 4);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP TRIGGER drop_it ON repeats;
CREATE RULE elsewhere AS ON INSERT TO repeats DO INSTEAD NOTHING;
INSERT INTO events VALUES (100, 4);
DROP RULE elsewhere ON repeats;
-- A filter of its own; then the same filter, in three ways.
CREATE FOREIGN TABLE seen_twice (id int, n int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE more_repeats (LIKE repeats);
CREATE TRIGGER zz BEFORE INSERT ON repeats FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_twice', 'more_repeats');
INSERT INTO events VALUES (100, 5);
INSERT INTO events VALUES (100, 5);
DROP TRIGGER zz ON repeats;
CREATE TRIGGER zz BEFORE INSERT ON repeats FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id');
DROP TRIGGER zz ON events;
CREATE TRIGGER zz BEFORE INSERT ON repeats FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id');
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER TABLE repeats DISABLE TRIGGER zz;
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
ALTER TABLE repeats ENABLE TRIGGER zz;
INSERT INTO events VALUES (100, 6);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP TRIGGER zz ON repeats;
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO events VALUES (NEW.id, NEW.n); RETURN NEW; END';
CREATE TRIGGER again BEFORE INSERT ON repeats FOR EACH ROW EXECUTE FUNCTION again();
INSERT INTO events VALUES (100, 6);
DROP TRIGGER again ON repeats;
INSERT INTO events VALUES (100, 7), (100, 8), (101, 8);
SELECT id, n FROM repeats ORDER BY n;

-- What is refused.
CREATE TABLE wide (id int, n int, note text);
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'no_table');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'a b');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'wide');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE VIEW view_of_wide AS SELECT * FROM wide;
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'view_of_wide');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'seen_twice');
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'pg_catalog.pg_class');
CREATE TABLE alien (x int, diverted_at timestamptz);
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'alien');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER TABLE alien ADD note int;
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'alien');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER TABLE alien DROP note, ALTER diverted_at TYPE int USING 0, ADD id bigint;
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'alien');
CREATE TEMP TABLE passing (LIKE wide);
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'pg_temp.passing');
CREATE TRIGGER zz AFTER INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats', 'id', 'n');
-- What is warned of: columns that nobody keeps, tables that do not survive.
CREATE UNLOGGED TABLE few (id bigint);
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'few', 'n');
INSERT INTO wide VALUES (1, 900), (2, 900);
TABLE few;
INSERT INTO wide VALUES (1, 900) ON CONFLICT DO NOTHING;
-- Temporary tables of one session.
CREATE TEMP TABLE coming (id int, n int, note text);
CREATE TRIGGER zz BEFORE INSERT ON coming FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('public.seen', 'passing');
INSERT INTO coming VALUES (200, 1, 'x'), (200, 2, 'y');
TABLE passing;
DROP TABLE wide, alien, few, coming, passing, events, repeats, more_repeats CASCADE;

-- Identity, generated and dropped columns, on both sides; other types and orders.
CREATE TABLE events (gone int, key int GENERATED ALWAYS AS IDENTITY, id int, twice int GENERATED ALWAYS AS (id * 2) STORED, price numeric(6, 2));
ALTER TABLE events DROP COLUMN gone;
CREATE TABLE repeats (price text, twice bigint GENERATED ALWAYS AS (id + id) STORED, gone text, id bigint,
  key bigint GENERATED ALWAYS AS IDENTITY, diverted_at timestamptz NOT NULL);
ALTER TABLE repeats DROP COLUMN gone;
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
INSERT INTO events (id, price) VALUES (300, 1.5), (300, 2.5), (301, 3.5), (301, 4.5);
SELECT key, id, twice, price FROM repeats;
DROP TABLE events, repeats;

-- Partitions of either table; the trigger of a partition is a copy of the table's.
CREATE TABLE events (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE events_low PARTITION OF events FOR VALUES FROM (0) TO (500);
CREATE TABLE events_high (n int, extra int, id int);
ALTER TABLE events_high DROP COLUMN extra;
ALTER TABLE events ATTACH PARTITION events_high FOR VALUES FROM (500) TO (1000);
CREATE TABLE repeats (n int, id int, diverted_at timestamptz) PARTITION BY RANGE (n);
CREATE TABLE repeats_low PARTITION OF repeats FOR VALUES FROM (0) TO (10);
CREATE TABLE repeats_high PARTITION OF repeats FOR VALUES FROM (10) TO (20);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
INSERT INTO events VALUES (400, 1), (400, 2), (600, 3), (600, 14), (400, 15);
INSERT INTO events_high (id, n) VALUES (600, 16);
INSERT INTO events VALUES (600, 20);
SELECT tableoid::regclass, id, n FROM repeats ORDER BY n;
-- Moved rows are not new.
UPDATE events SET id = 601 WHERE id = 400;
SELECT tableoid::regclass, * FROM events ORDER BY n;
-- The other table does not become a part of this one.
CREATE TABLE events_more (LIKE events);
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'events_more');
ALTER TABLE events ATTACH PARTITION events_more FOR VALUES FROM (1000) TO (2000);
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'events_low');
ALTER TABLE repeats RENAME TO renamed;
SELECT tgrelid::regclass, encode(tgargs, 'escape') FROM pg_trigger WHERE tgname = 'zz' ORDER BY 1;
DROP TABLE events, events_more, renamed;

-- Rights: the owner of the table needs INSERT on the other one; who inserts needs none.
CREATE ROLE divert_owner;
CREATE ROLE divert_clerk;
CREATE ROLE divert_keeper;
CREATE SCHEMA kept AUTHORIZATION divert_keeper;
GRANT USAGE ON SCHEMA kept TO divert_owner;
CREATE TABLE events (id int, n int);
ALTER TABLE events OWNER TO divert_owner;
GRANT INSERT ON seen TO divert_owner;
GRANT INSERT ON events TO divert_clerk;
SET ROLE divert_keeper;
CREATE TABLE kept.repeats (id int, n int, who text DEFAULT current_user, path text DEFAULT current_setting('search_path'));
CREATE FUNCTION kept.note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.who := NEW.who || '', '' || session_user; RETURN NEW; END';
CREATE TRIGGER note BEFORE INSERT ON kept.repeats FOR EACH ROW EXECUTE FUNCTION kept.note();
RESET ROLE;
SET ROLE divert_owner;
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'kept.repeats');
-- A dump grants it afterwards.
SET check_function_bodies = off;
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'kept.repeats');
RESET check_function_bodies;
RESET ROLE;
SET ROLE divert_clerk;
INSERT INTO events VALUES (500, 1);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
RESET ROLE;
GRANT INSERT ON kept.repeats TO divert_owner;
SET ROLE divert_clerk;
SET search_path = public, pg_temp;
INSERT INTO events VALUES (500, 1), (500, 2);
SHOW search_path;
SELECT current_user;
INSERT INTO kept.repeats VALUES (1, 1);
RESET search_path;
RESET ROLE;
SELECT id, n, who = 'divert_owner, ' || session_user AS as_owner, path FROM kept.repeats;
-- The trigger of the other table cannot become who inserts.
CREATE OR REPLACE FUNCTION kept.note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN SET ROLE divert_keeper; RETURN NEW; END';
INSERT INTO events VALUES (500, 3);
CREATE OR REPLACE FUNCTION kept.note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
DO $$
BEGIN
  INSERT INTO events VALUES (500, 4);
  BEGIN
    ALTER TABLE kept.repeats ADD CHECK (n < 10);
    INSERT INTO events VALUES (500, 5), (500, 11);
  EXCEPTION WHEN check_violation THEN
    RAISE NOTICE 'as % with search_path %', current_user, current_setting('search_path');
  END;
  INSERT INTO events VALUES (500, 12);
END $$;
SELECT n FROM kept.repeats ORDER BY n;
-- A new owner of the table needs the right.
ALTER TABLE events OWNER TO divert_clerk;
DROP TABLE events, kept.repeats;
DROP FUNCTION kept.note, drop_it, again;
DROP SCHEMA kept, nowhere;
REVOKE ALL ON seen FROM divert_owner;
DROP ROLE divert_owner, divert_clerk, divert_keeper;
-- A trigger of the other table replaces the one that diverts, and makes it divert another row meanwhile.
CREATE TABLE events (id int, n int);
CREATE TABLE repeats (LIKE events);
CREATE FOREIGN TABLE seen_first (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FOREIGN TABLE seen_next (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FUNCTION replace_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.n = 2 THEN
    CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_next', 'repeats');
    INSERT INTO events VALUES (2, 3), (2, 4);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER before BEFORE INSERT ON repeats FOR EACH ROW EXECUTE FUNCTION replace_it();
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_first', 'repeats');
INSERT INTO events VALUES (1, 0), (1, 1);
INSERT INTO events VALUES (1, 2);
INSERT INTO events VALUES (2, 5);
SELECT * FROM events ORDER BY n;
SELECT * FROM repeats ORDER BY n;
DROP TABLE events, repeats;
DROP FUNCTION replace_it;
DROP FOREIGN TABLE seen, seen_twice, seen_first, seen_next;
