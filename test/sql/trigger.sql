--
-- Triggers that judge rows: streamfilter_discard() and streamfilter_mark()
--
CREATE FOREIGN TABLE seen_clicks (user_id bigint, url text) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');

-- ---- streamfilter_discard('filter'): repeats are not inserted -----------------------------------

-- The table's columns are found by the names of the filter's.
CREATE TABLE clicks (at int, user_id bigint, url text);
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON clicks FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_clicks');

INSERT INTO clicks VALUES (1, 7, '/a'), (2, 7, '/b'), (3, 7, '/a'), (4, 8, '/a');
TABLE clicks ORDER BY at;

-- RETURNING shows what is inserted.
INSERT INTO clicks VALUES (5, 8, '/a'), (6, 8, '/b') RETURNING *;
INSERT INTO clicks SELECT 7, user_id, url FROM clicks RETURNING *;

-- A repeat is a repeat in every way of inserting: COPY, loops, prepared statements, MERGE.
COPY clicks FROM stdin;
8	8	/b
9	9	/a
10	9	/a
\.
DO $$
BEGIN
  FOR i IN 1..3 LOOP
    INSERT INTO clicks VALUES (10 + i, 10 + i / 3, '/loop');
  END LOOP;
END $$;
PREPARE click (int, bigint, text) AS INSERT INTO clicks VALUES ($1, $2, $3) RETURNING at;
EXECUTE click (14, 11, '/loop');
EXECUTE click (15, 12, '/loop');
EXECUTE click (16, 12, '/loop');
MERGE INTO clicks c USING (VALUES (17, 12, '/loop'), (18, 13, '/loop')) AS v (at, user_id, url)
  ON c.at = v.at
  WHEN NOT MATCHED THEN INSERT VALUES (v.at, v.user_id, v.url);
SELECT * FROM clicks WHERE at > 7 ORDER BY at;

-- A row without a key (NULL in one of its columns) is never a repeat.
INSERT INTO clicks VALUES (20, NULL, '/a'), (21, NULL, '/a'), (22, 7, NULL), (23, 7, NULL);
SELECT * FROM clicks WHERE at >= 20 ORDER BY at;

-- UPDATE and DELETE are not judged, and what is deleted stays remembered.
UPDATE clicks SET url = '/a' WHERE at = 2;
DELETE FROM clicks;
INSERT INTO clicks VALUES (30, 7, '/b'), (31, 100, '/a') RETURNING *;

-- ---- streamfilter_discard('filter', column, …): columns of other names --------------------------

-- They stand in the order of the filter's columns. Implicit casts apply, as for an INSERT into the
-- filter: integer to bigint, varchar to text. Tables that share a filter share what it remembers.
CREATE TABLE visits (page varchar(20), visitor int);
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON visits
  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_clicks', 'visitor', 'page');
INSERT INTO visits VALUES ('/a', 7), ('/a', 200), ('/a', 200), ('/c', 200) RETURNING *;

-- A WHEN condition says which rows are judged at all.
CREATE TABLE orders (user_id bigint, url text, test boolean);
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON orders
  FOR EACH ROW WHEN (NOT NEW.test) EXECUTE FUNCTION streamfilter_discard('seen_clicks');
INSERT INTO orders VALUES (7, '/a', true), (7, '/a', false), (7, '/o', false) RETURNING *;

-- ---- streamfilter_mark('filter', column): nothing is discarded ----------------------------------

CREATE FOREIGN TABLE seen_mails (address text) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE mails (n int, address text, repeated boolean);
CREATE TRIGGER zz_mark_duplicates BEFORE INSERT ON mails
  FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen_mails', 'repeated');

-- The trigger alone decides what the column says; a row without a key is no repeat.
INSERT INTO mails VALUES (1, 'ada@x', NULL), (2, 'ada@x', NULL), (3, 'bob@x', true),
  (4, 'bob@x', false), (5, NULL, NULL), (6, NULL, true);
TABLE mails ORDER BY n;

CREATE TABLE letters (recipient text, again boolean NOT NULL);
CREATE TRIGGER zz_mark_duplicates BEFORE INSERT ON letters
  FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen_mails', 'again', 'recipient');
INSERT INTO letters (recipient) VALUES ('ada@x'), ('cyd@x') RETURNING *;

-- ---- values on their way into the filter --------------------------------------------------------

-- They are rounded and checked by the types of the filter's columns, as an INSERT would.
CREATE FOREIGN TABLE seen_readings (sensor varchar(4), at timestamptz(0), value numeric(6,1))
  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE readings (sensor text, at timestamptz, value numeric);
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_readings');
INSERT INTO readings VALUES
  ('a', '2026-01-01 00:00:00.1+00', 1.04),
  ('a', '2026-01-01 00:00:00.2+00', 1.0),
  ('a', '2026-01-01 00:00:00.9+00', 1.0),
  ('a', '2026-01-01 00:00:00+00', 1.1)
  RETURNING *;
INSERT INTO readings VALUES ('sensor 1', now(), 1);
INSERT INTO readings VALUES ('a', now(), 1000000);

-- Equality is that of SELECT DISTINCT.
CREATE FOREIGN TABLE seen_things (number numeric, list int[], json jsonb, blank char(5))
  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE things (number numeric, list int[], json jsonb, blank char(5));
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON things FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_things');
INSERT INTO things VALUES
  (1.0, '{1,2}', '{"a": 1, "b": 2}', 'x'),
  (1.00, '{1,2}', '{"b": 2, "a": 1.0}', 'x  '),
  (1.0, '{2,1}', '{"a": 1, "b": 2}', 'x')
  RETURNING *;

-- Domains of the filter are checked.
CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0);
CREATE FOREIGN TABLE seen_even (n even) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE evens (n int);
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON evens FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_even');
INSERT INTO evens VALUES (2), (2), (4), (NULL) RETURNING *;
INSERT INTO evens VALUES (3);

-- Columns with a role come along.
CREATE FOREIGN TABLE seen_offers (id int, weight numeric OPTIONS (role 'importance'),
    at timestamptz OPTIONS (role 'time'))
  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE offers (id int, weight numeric, at timestamptz);
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON offers FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_offers');
INSERT INTO offers VALUES
  (1, 10, '2026-01-01'), (1, 20, '2026-01-02'), (2, NULL, NULL), (3, 'NaN', 'infinity')
  RETURNING id;

-- ---- names --------------------------------------------------------------------------------------

-- The filter's name is written as in SQL: double quotes where needed, a schema if wanted.
CREATE SCHEMA "My Filters";
CREATE FOREIGN TABLE "My Filters"."Seen Names" ("First Name" text, lower text)
  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE "Some Names" ("First Name" text, lower text, "Again?" boolean);
CREATE TRIGGER "zz Mark" BEFORE INSERT ON "Some Names" FOR EACH ROW
  EXECUTE FUNCTION streamfilter_mark('"My Filters"."Seen Names"', 'Again?');
INSERT INTO "Some Names" VALUES ('Ada', 'ada'), ('Ada', 'ada') RETURNING *;
-- Columns by their exact names, or likewise as in SQL.
CREATE OR REPLACE TRIGGER "zz Mark" BEFORE INSERT ON "Some Names" FOR EACH ROW
  EXECUTE FUNCTION streamfilter_mark('"My Filters"."Seen Names"', '"Again?"', 'First Name', 'LOWER');
INSERT INTO "Some Names" VALUES ('Ada', 'ada'), ('Bob', 'bob') RETURNING *;

-- Without a schema: the table's, then the extension's (public here); the path of the session does
-- not count.
CREATE SCHEMA app;
CREATE SCHEMA elsewhere;
CREATE FOREIGN TABLE elsewhere.seen_logins (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE app.logins (id int);
SET search_path = elsewhere, app, public;
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON app.logins FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_logins');
CREATE FOREIGN TABLE public.seen_logins (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON app.logins FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_logins');
INSERT INTO app.logins VALUES (1), (1) RETURNING *;
SELECT streamfilter_test('elsewhere.seen_logins', 1) AS elsewhere,
       streamfilter_test('public.seen_logins', 1) AS in_public;
-- The name is looked up once: the trigger keeps its filter.
CREATE FOREIGN TABLE app.seen_logins (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
INSERT INTO app.logins VALUES (1), (2) RETURNING *;
RESET search_path;

-- ---- partitioned tables -------------------------------------------------------------------------

-- The trigger of the parent judges the rows of all partitions by one filter.
CREATE FOREIGN TABLE seen_events (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE SCHEMA archive;
CREATE TABLE events (day int, id int) PARTITION BY LIST (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1);
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_events');
-- Also of those that come later, with columns in another order, or of another schema: the table
-- that CREATE TRIGGER named says where filters are looked up, not the partition.
CREATE TABLE archive.events_2 (id int, dropped int, day int);
ALTER TABLE archive.events_2 DROP COLUMN dropped;
ALTER TABLE events ATTACH PARTITION archive.events_2 FOR VALUES IN (2);
CREATE FOREIGN TABLE archive.seen_events (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
INSERT INTO events VALUES (1, 1), (1, 1), (2, 1), (2, 2), (1, 2), (1, 3) RETURNING *;
INSERT INTO archive.events_2 VALUES (3, 2), (4, 2) RETURNING *;
INSERT INTO events_1 VALUES (1, 4), (1, 5) RETURNING *;
COPY events FROM stdin;
1	5
2	6
2	6
\.
SELECT tableoid::regclass, * FROM events ORDER BY id;

-- ---- rights -------------------------------------------------------------------------------------

-- Who inserts needs no right on the filter: the owner of the table does, as the one who has put the
-- trigger there.
CREATE ROLE streamfilter_owner;
CREATE ROLE streamfilter_writer;
CREATE SCHEMA secret;
CREATE FOREIGN TABLE secret.seen_jobs (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE jobs (id int);
ALTER TABLE jobs OWNER TO streamfilter_owner;
GRANT INSERT, SELECT ON jobs TO streamfilter_writer;
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('secret.seen_jobs');
-- A dump grants rights afterwards.
SET check_function_bodies = off;
CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('secret.seen_jobs');
RESET check_function_bodies;
SET ROLE streamfilter_writer;
INSERT INTO jobs VALUES (1);
RESET ROLE;
-- Even a superuser's insert counts as the owner's.
INSERT INTO jobs VALUES (1);
GRANT INSERT ON secret.seen_jobs TO streamfilter_owner;
GRANT USAGE ON SCHEMA secret TO streamfilter_owner;
SET ROLE streamfilter_writer;
INSERT INTO jobs VALUES (1), (1), (2) RETURNING *;
RESET ROLE;
REVOKE INSERT ON secret.seen_jobs FROM streamfilter_owner;
INSERT INTO jobs VALUES (3);

-- ---- switching off ------------------------------------------------------------------------------

-- streamfilter.enabled = off: every row passes as it is, nothing is remembered.
SET streamfilter.enabled = off;
INSERT INTO clicks VALUES (40, 7, '/a'), (41, 7, '/off') RETURNING *;
INSERT INTO mails VALUES (40, 'ada@x', NULL), (41, 'off@x', true) RETURNING *;
SET streamfilter.enabled = on;
INSERT INTO clicks VALUES (42, 7, '/a'), (43, 7, '/off') RETURNING *;
SET ROLE streamfilter_writer;
SET streamfilter.enabled = off;
RESET ROLE;

-- A disabled trigger does not fire, as always.
ALTER TABLE clicks DISABLE TRIGGER zz_drop_duplicates;
INSERT INTO clicks VALUES (44, 7, '/a') RETURNING *;
ALTER TABLE clicks ENABLE TRIGGER zz_drop_duplicates;

-- ---- clean up -----------------------------------------------------------------------------------
DROP TABLE clicks, visits, orders, mails, letters, readings, things, evens, offers, "Some Names",
  app.logins, events, jobs;
DROP FOREIGN TABLE seen_clicks, seen_mails, seen_readings, seen_things, seen_even, seen_offers,
  seen_logins, elsewhere.seen_logins, app.seen_logins, "My Filters"."Seen Names", seen_events,
  archive.seen_events, secret.seen_jobs;
DROP DOMAIN even;
DROP SCHEMA app, elsewhere, "My Filters", archive, secret;
DROP ROLE streamfilter_owner, streamfilter_writer;
