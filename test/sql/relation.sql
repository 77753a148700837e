--
-- Filters as relations: INSERT, COPY, DELETE, TRUNCATE, and what they refuse
--
CREATE SCHEMA relation;
SET search_path = relation, public;
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE FOREIGN TABLE seen (user_id bigint, url text) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');

-- ---- INSERT remembers keys ----------------------------------------------------------------------

-- Tag and RETURNING count only keys that were not seen before.
\set QUIET off
INSERT INTO seen VALUES (1, '/a'), (1, '/b'), (1, '/a');
INSERT INTO seen VALUES (1, '/b'), (2, '/b'), (3, '/b') RETURNING *;
INSERT INTO seen VALUES (1, '/a');

-- ON CONFLICT DO NOTHING is what happens anyway.
INSERT INTO seen VALUES (3, '/b'), (4, '/b') ON CONFLICT DO NOTHING RETURNING user_id;
\set QUIET on

-- From a table, as when a filter is warmed; prepared; in PL/pgSQL, with FOUND.
CREATE TABLE clicks (at int, url varchar(20), user_id int);
INSERT INTO clicks SELECT i, '/' || i % 5, i % 100 FROM generate_series(1, 1000) i;
INSERT INTO seen SELECT user_id, url FROM clicks;
\echo :ROW_COUNT
SELECT count(DISTINCT (user_id, url)) FROM clicks;
PREPARE remember (bigint, text) AS INSERT INTO seen VALUES ($1, $2) RETURNING *;
EXECUTE remember (7, '/new');
EXECUTE remember (7, '/new');
DO $$
BEGIN
  FOR i IN 1..3 LOOP
    INSERT INTO seen VALUES (i / 2, '/loop');
    RAISE NOTICE '%: %', i, CASE WHEN FOUND THEN 'new' ELSE 'seen' END;
  END LOOP;
END $$;

-- What RETURNING lets through can go on: first occurrences of a batch.
WITH first AS (INSERT INTO seen SELECT v.user_id, v.url
                 FROM (VALUES (7, '/new'), (8, '/new'), (9, '/new'), (8, '/new')) v (user_id, url)
               RETURNING *)
SELECT * FROM first ORDER BY user_id;

-- Columns in any order, defaults, and a column that is left out is NULL: such a row has no key.
ALTER FOREIGN TABLE seen ALTER COLUMN url SET DEFAULT '/';
INSERT INTO seen (user_id) VALUES (500), (500) RETURNING *;
INSERT INTO seen (url, user_id) VALUES ('/', 500), ('/', 501) RETURNING *;
INSERT INTO seen (url) VALUES ('/'), ('/') RETURNING *;

-- Many rows at a time.
INSERT INTO seen SELECT i, 'many' FROM generate_series(1, 2000) i;
\echo :ROW_COUNT
SELECT count(*) FROM generate_series(1, 3000) i WHERE EXISTS (SELECT FROM seen WHERE user_id = i AND url = 'many');

-- ---- COPY ---------------------------------------------------------------------------------------

\set QUIET off
COPY seen FROM stdin;
1	/a
1	/copy
2	/copy
1	/copy
\.
COPY seen (url, user_id) FROM stdin (FORMAT csv) WHERE user_id < 10;
/copy,2
/copy,3
/copy,33
\.
\set QUIET on
COPY seen FROM stdin;
x	/copy
\.
-- A filter cannot be listed, so it cannot be copied out either.
COPY seen TO stdout;
COPY (SELECT * FROM seen) TO stdout;

-- ---- What comes in gets the type of the column, its typmod included -----------------------------

CREATE FOREIGN TABLE typed (price numeric(6,2), code varchar(3), at timestamptz(0), flag char(4))
  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
INSERT INTO typed VALUES (1, 'abc', '2026-01-01 00:00:00.4+00', 'y') RETURNING *;
INSERT INTO typed VALUES (1.001, 'abc', '2026-01-01 00:00:00+00', 'y   ') RETURNING *;
INSERT INTO typed VALUES (12345, 'abc', now(), 'y');
INSERT INTO typed VALUES (1, 'abcd', now(), 'y');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE FOREIGN TABLE of_domain (n positive) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
INSERT INTO of_domain VALUES (1), (1) RETURNING *;
INSERT INTO of_domain VALUES (-1);

-- Columns may go and come: the key changes with them, and the filter starts empty.
ALTER FOREIGN TABLE typed DROP COLUMN code, DROP COLUMN at;
ALTER FOREIGN TABLE typed ADD COLUMN n int;
INSERT INTO typed VALUES (1, 'y', 5), (1, 'y', 6), (1, 'y', 5) RETURNING *;
SELECT typed, tableoid::regclass FROM typed WHERE n = 5 AND flag = 'y' AND price = 1;

-- ---- NULL in a key ------------------------------------------------------------------------------

-- By default NULLs are distinct: such a row is new every time and is not remembered.
INSERT INTO seen VALUES (NULL, '/a'), (NULL, '/a'), (1, NULL) RETURNING *;
INSERT INTO seen VALUES (NULL, '/a') RETURNING *;
-- With nulls 'not distinct' NULL is one more value.
CREATE FOREIGN TABLE seen_null (a int, b int)
  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6', nulls 'not distinct');
INSERT INTO seen_null VALUES (1, NULL), (1, NULL), (NULL, 1), (NULL, NULL), (NULL, NULL) RETURNING *;
-- Nevertheless NULL equals nothing.
SELECT * FROM seen_null WHERE a = 1 AND b = NULL;
SELECT streamfilter_test('seen_null', 1, NULL), streamfilter_test('seen_null', 2, NULL);

-- ---- Columns with a role are no part of the key -------------------------------------------------

SET client_min_messages = warning;
CREATE FOREIGN TABLE ranked (id int, weight float8 OPTIONS (role 'importance'))
  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
RESET client_min_messages;
INSERT INTO ranked VALUES (1, 10), (1, 20), (2, 30) RETURNING *;
SELECT * FROM ranked WHERE id = 1;

-- ---- Triggers and views on a filter -------------------------------------------------------------

CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE NOTICE '% %', TG_WHEN, NEW; RETURN NEW; END $$;
CREATE TRIGGER before BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER after AFTER INSERT ON seen FOR EACH ROW EXECUTE FUNCTION tell();
-- AFTER triggers fire for new keys only.
INSERT INTO seen VALUES (1, '/a'), (1, '/trigger');
DROP TRIGGER before ON seen;
DROP TRIGGER after ON seen;

CREATE VIEW of_user AS SELECT user_id, url FROM seen WHERE user_id < 1000 WITH CHECK OPTION;
INSERT INTO of_user VALUES (1, '/a'), (1, '/view') RETURNING *;
INSERT INTO of_user VALUES (1001, '/view');
SELECT * FROM of_user WHERE user_id = 1 AND url = '/view';

-- ---- TRUNCATE forgets everything ----------------------------------------------------------------

SELECT * FROM seen WHERE user_id = 1 AND url = '/a';
TRUNCATE seen;
SELECT * FROM seen WHERE user_id = 1 AND url = '/a';
INSERT INTO seen VALUES (1, '/a') RETURNING *;
TRUNCATE clicks, seen, seen_null RESTART IDENTITY CASCADE;
SELECT * FROM seen WHERE user_id = 1 AND url = '/a';
-- What was never used has nothing to forget.
CREATE FOREIGN TABLE unused (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '3');
TRUNCATE unused;
SELECT created IS NULL AS unused FROM streamfilter_stats WHERE filter = 'unused'::regclass;

-- ---- DELETE forgets single keys -----------------------------------------------------------------

SET client_min_messages = warning;
CREATE FOREIGN TABLE recent (user_id bigint, url varchar(20)) SERVER streamfilter OPTIONS (kind 'lru', keys '1000');
CREATE FOREIGN TABLE quotient (user_id bigint, gone int, url text, weight int OPTIONS (role 'importance'))
  SERVER streamfilter OPTIONS (kind 'sqf', memory '256kB', seed '1', fpr '0.01');
ALTER FOREIGN TABLE quotient DROP COLUMN gone;
CREATE FOREIGN TABLE quotients (id int) SERVER streamfilter OPTIONS (kind 'dsqf', memory '64kB', seed '1', fpr '0.01');
CREATE FOREIGN TABLE some_recent (id int) SERVER streamfilter OPTIONS (kind 'fplru', keys '100', seed '1', fpr '0.01');
RESET client_min_messages;
INSERT INTO recent VALUES (1, '/a'), (1, '/b'), (2, '/a'), (3, '/a'), (4, '/a');
INSERT INTO quotient VALUES (1, '/a', 5), (1, '/b', 5), (2, '/a', 5), (3, '/a', 5), (4, '/a', 5);
INSERT INTO quotients VALUES (1), (2);
INSERT INTO some_recent VALUES (1), (2);

-- The tag counts what was forgotten.
\set QUIET off
DELETE FROM recent WHERE user_id = 1 AND url = '/a';
DELETE FROM recent WHERE user_id = 1 AND url = '/a';
DELETE FROM quotient WHERE user_id = 1 AND url = '/a';
DELETE FROM quotient WHERE user_id = 1 AND url = '/a';
DELETE FROM quotients WHERE id = 1;
DELETE FROM quotients WHERE id = 1;
DELETE FROM some_recent WHERE id = 1;
DELETE FROM some_recent WHERE id = 1;
\set QUIET on
-- Other keys stay, and what was forgotten is new again.
SELECT * FROM recent WHERE user_id = 1 AND url = '/a';
SELECT * FROM recent WHERE user_id = 1 AND url = '/b';
SELECT * FROM quotient WHERE user_id = 1 AND url = '/a';
SELECT * FROM quotient WHERE user_id = 1 AND url = '/b';
SELECT * FROM quotients WHERE id IN (SELECT generate_series(1, 2));
INSERT INTO recent VALUES (1, '/a'), (1, '/a') RETURNING *;
INSERT INTO quotient VALUES (1, '/a', 5), (1, '/a', 6) RETURNING *;

-- RETURNING has the rows as SELECT has them.
DELETE FROM recent WHERE user_id = 1 AND url = '/a' RETURNING *, tableoid::regclass;
DELETE FROM recent WHERE user_id = 1 AND url = '/a' RETURNING *;
DELETE FROM quotient q WHERE user_id = 1 AND url = '/a' RETURNING q, *;
-- Values that are no key of the column, or NULL.
DELETE FROM recent WHERE user_id = 1 AND url = '/a long url that does not fit' RETURNING *;
DELETE FROM recent WHERE user_id = NULL AND url = '/b' RETURNING *;
DELETE FROM recent WHERE user_id = 1 AND url = '/b' AND false RETURNING *;
-- Further conditions.
DELETE FROM recent WHERE user_id = 1 AND url = '/b' AND user_id > 1 RETURNING *;

-- With other relations; a key that is found twice is forgotten once.
CREATE TABLE leavers (id int, why text);
INSERT INTO leavers VALUES (2, 'moved'), (3, 'bored'), (3, 'really'), (9, 'unknown');
\set QUIET off
DELETE FROM recent r USING leavers l WHERE r.user_id = l.id AND r.url = '/a' RETURNING r.*, l.id;
DELETE FROM quotient WHERE (user_id, url) IN (SELECT id, '/a' FROM leavers);
DELETE FROM quotient WHERE user_id = (SELECT max(id) FROM leavers) AND url = '/a';
\set QUIET on
SELECT id, EXISTS (SELECT FROM recent WHERE user_id = id AND url = '/a') AS recent,
       EXISTS (SELECT FROM quotient WHERE user_id = id AND url = '/a') AS quotient
  FROM generate_series(1, 4) id;
-- One filter deletes what another knows; a table deletes what a filter knows.
INSERT INTO recent VALUES (2, '/a');
DELETE FROM recent r USING quotient q
  WHERE r.user_id = q.user_id AND r.url = q.url AND q.user_id = 4 AND q.url = '/a' RETURNING *;
DELETE FROM leavers l USING recent r WHERE r.user_id = l.id AND r.url = '/a' RETURNING l.*;
-- Many rows; those to delete go through a hash table or a sort.
INSERT INTO quotient SELECT i, 'many', 0 FROM generate_series(1, 500) i;
CREATE TEMP TABLE numbers AS SELECT generate_series(1, 600) AS i;
ANALYZE numbers;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) DELETE FROM quotient USING numbers n, generate_series(1, 300) other
  WHERE user_id = n.i AND url = 'many' AND weight IS NULL AND other = length(url) * user_id / 4;
WITH gone AS (DELETE FROM quotient USING numbers n, generate_series(1, 300) other
                WHERE user_id = n.i AND url = 'many' AND weight IS NULL AND other = length(url) * user_id / 4
                RETURNING user_id, url)
SELECT min(user_id), max(user_id), count(*) > 290 AS enough, count(DISTINCT url) FROM gone;
RESET enable_mergejoin;
SET enable_hashjoin = off;
EXPLAIN (COSTS OFF) DELETE FROM quotient USING numbers n, generate_series(1, 600) other
  WHERE user_id = n.i AND url = 'many' AND other = length(url) * user_id / 4;
WITH gone AS (DELETE FROM quotient USING numbers n, generate_series(1, 600) other
                WHERE user_id = n.i AND url = 'many' AND other = length(url) * user_id / 4
                RETURNING user_id, url)
SELECT min(user_id), max(user_id), count(*) > 190 AS enough, count(DISTINCT url) FROM gone;
RESET enable_hashjoin;
SELECT count(*) FROM numbers WHERE EXISTS (SELECT FROM quotient WHERE user_id = i AND url = 'many');

-- Prepared, with plans of both kinds; in PL/pgSQL, with FOUND.
PREPARE forget (bigint, text) AS DELETE FROM recent WHERE user_id = $1 AND url = $2 RETURNING *;
INSERT INTO recent VALUES (5, '/p'), (6, '/p');
EXECUTE forget (5, '/p');
EXECUTE forget (5, '/p');
SET plan_cache_mode = force_generic_plan;
EXECUTE forget (6, '/p');
EXECUTE forget (6, '/p');
RESET plan_cache_mode;
DO $$
BEGIN
  INSERT INTO recent VALUES (7, '/loop');
  FOR i IN 1..2 LOOP
    DELETE FROM recent WHERE user_id = 7 AND url = '/loop';
    RAISE NOTICE '%: %', i, CASE WHEN FOUND THEN 'forgotten' ELSE 'not there' END;
  END LOOP;
END $$;

-- Triggers see the rows; through a view.
CREATE FUNCTION tell_old() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE NOTICE '% %', TG_WHEN, OLD; RETURN OLD; END $$;
CREATE TRIGGER before BEFORE DELETE ON recent FOR EACH ROW EXECUTE FUNCTION tell_old();
CREATE TRIGGER after AFTER DELETE ON recent FOR EACH ROW EXECUTE FUNCTION tell_old();
CREATE VIEW of_recent AS SELECT url, user_id AS id FROM recent WHERE user_id < 1000;
INSERT INTO recent VALUES (8, '/view');
DELETE FROM of_recent WHERE id = 8 AND url = '/view' RETURNING *;
DELETE FROM of_recent WHERE id = 8 AND url = '/view' RETURNING *;
DROP TRIGGER before ON recent;
DROP TRIGGER after ON recent;

-- Every key column needs a value.
DELETE FROM recent;
DELETE FROM recent WHERE user_id = 1;
DELETE FROM recent USING leavers WHERE user_id = id;
EXPLAIN (COSTS OFF) DELETE FROM quotients WHERE id = 2;
SELECT pg_relation_is_updatable('recent', false) & 28 AS lru,
       pg_relation_is_updatable('seen', false) & 28 AS bloom;

-- The statistics count look-ups and what was remembered, not what was forgotten.
SELECT accepted, discarded FROM streamfilter_stats WHERE filter = 'quotients'::regclass;

-- ---- What a filter cannot do --------------------------------------------------------------------

UPDATE seen SET user_id = 2 WHERE user_id = 1 AND url = '/a';
DELETE FROM seen WHERE user_id = 1 AND url = '/a';
DELETE FROM seen;
SET client_min_messages = warning;
CREATE FOREIGN TABLE stable (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '8kB', fpr '0.01');
RESET client_min_messages;
DELETE FROM stable WHERE id = 1;
EXPLAIN DELETE FROM stable WHERE id = 1;
INSERT INTO seen VALUES (1, '/a') ON CONFLICT (user_id, url) DO NOTHING;
MERGE INTO seen USING (VALUES (1, '/a')) v (a, b) ON user_id = a AND url = b
  WHEN NOT MATCHED THEN INSERT VALUES (a, b);
CREATE TABLE parts (id int) PARTITION BY LIST (id);
CREATE FOREIGN TABLE part PARTITION OF parts FOR VALUES IN (1) SERVER streamfilter OPTIONS (memory '8kB', fpr '0.01');
IMPORT FOREIGN SCHEMA relation FROM SERVER streamfilter INTO relation;
BEGIN READ ONLY;
INSERT INTO seen VALUES (1, '/a');
ROLLBACK;
BEGIN READ ONLY;
DELETE FROM recent WHERE user_id = 1 AND url = '/b';
ROLLBACK;
BEGIN READ ONLY;
TRUNCATE seen;
ROLLBACK;
SELECT table_name, is_insertable_into FROM information_schema.tables
  WHERE table_schema = 'relation' AND table_name IN ('seen', 'of_user') ORDER BY 1;

-- ---- Rights -------------------------------------------------------------------------------------

-- INSERT: remember; SELECT: look up; DELETE: forget what was looked up; TRUNCATE: forget everything.
CREATE ROLE regress_streamfilter_clerk;
GRANT USAGE ON SCHEMA relation TO regress_streamfilter_clerk;
CREATE VIEW through_owner AS SELECT * FROM seen;
CREATE VIEW through_invoker WITH (security_invoker) AS SELECT * FROM seen;
GRANT SELECT, INSERT ON through_owner, through_invoker TO regress_streamfilter_clerk;
SET ROLE regress_streamfilter_clerk;
INSERT INTO seen VALUES (1, '/right');
SELECT FROM seen WHERE user_id = 1 AND url = '/right';
TRUNCATE seen;
-- Through a view its owner's rights count, or the invoker's.
INSERT INTO through_owner VALUES (1, '/right') RETURNING *;
SELECT * FROM through_owner WHERE user_id = 1 AND url = '/right';
INSERT INTO through_invoker VALUES (1, '/right');
SELECT * FROM through_invoker WHERE user_id = 1 AND url = '/right';
RESET ROLE;
GRANT INSERT ON seen TO regress_streamfilter_clerk;
SET ROLE regress_streamfilter_clerk;
INSERT INTO seen VALUES (2, '/right');
INSERT INTO seen VALUES (3, '/right') RETURNING *;
SELECT FROM seen WHERE user_id = 2 AND url = '/right';
RESET ROLE;
GRANT SELECT, TRUNCATE ON seen TO regress_streamfilter_clerk;
SET ROLE regress_streamfilter_clerk;
SELECT * FROM seen WHERE user_id = 2 AND url = '/right';
TRUNCATE seen;
SELECT * FROM seen WHERE user_id = 2 AND url = '/right';
-- DELETE takes both rights, as its condition reads columns.
INSERT INTO recent VALUES (1, '/right');
DELETE FROM recent WHERE user_id = 1 AND url = '/b';
RESET ROLE;
GRANT DELETE ON recent TO regress_streamfilter_clerk;
SET ROLE regress_streamfilter_clerk;
DELETE FROM recent WHERE user_id = 1 AND url = '/b';
RESET ROLE;
GRANT SELECT ON recent TO regress_streamfilter_clerk;
REVOKE DELETE ON recent FROM regress_streamfilter_clerk;
SET ROLE regress_streamfilter_clerk;
DELETE FROM recent WHERE user_id = 1 AND url = '/b';
RESET ROLE;
GRANT DELETE ON recent TO regress_streamfilter_clerk;
SET ROLE regress_streamfilter_clerk;
DELETE FROM recent WHERE user_id = 1 AND url = '/b' RETURNING *;
-- Creating one takes USAGE on the server, which PUBLIC does not have.
RESET ROLE;
GRANT CREATE ON SCHEMA relation TO regress_streamfilter_clerk;
SET ROLE regress_streamfilter_clerk;
CREATE FOREIGN TABLE mine (id int) SERVER streamfilter OPTIONS (memory '8kB');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER streamfilter TO regress_streamfilter_clerk;
SET ROLE regress_streamfilter_clerk;
CREATE FOREIGN TABLE mine (id int) SERVER streamfilter OPTIONS (memory '8kB');
INSERT INTO mine VALUES (1), (1) RETURNING *;
RESET ROLE;

-- ---- EXPLAIN ------------------------------------------------------------------------------------

SET streamfilter.batch_insert = on;  -- whatever the server is set to
EXPLAIN (COSTS OFF) INSERT INTO unused SELECT user_id FROM clicks;
RESET streamfilter.batch_insert;
-- It takes no memory.
SELECT created IS NULL AS unused FROM streamfilter_stats WHERE filter = 'unused'::regclass;
-- Other formats have plain numbers; `Fill` is the one of the statistics.
CREATE FUNCTION explained(property text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) INSERT INTO unused VALUES (1)' INTO plan;
  RETURN plan -> 0 -> 'Plan' ->> property;
END $$;
INSERT INTO unused SELECT generate_series(1, 5000);
SELECT explained('Kind') AS kind, explained('Memory') AS memory,
       fill > 0.1 AS filled, round(fill::numeric * 100, 1) = explained('Fill')::numeric AS equal
  FROM streamfilter_stats WHERE filter = 'unused'::regclass;

SET client_min_messages = warning;
DROP SCHEMA relation CASCADE;
REVOKE ALL ON FOREIGN SERVER streamfilter FROM regress_streamfilter_clerk;
DROP ROLE regress_streamfilter_clerk;
