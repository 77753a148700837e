-- streamfilter_seen, streamfilter_test, streamfilter_value, streamfilter_merge.
CREATE FOREIGN TABLE seen (user_id bigint, url text) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '10', seed '1');

-- ---- seen remembers, test does not ----------------------------------------------------------------
SELECT streamfilter_test('seen', 1, '/a') AS t1, streamfilter_seen('seen', 1, '/a') AS s1,
       streamfilter_seen('seen', 1, '/a') AS s2, streamfilter_test('seen', 1, '/a') AS t2;
-- First occurrences only.
SELECT i % 3 AS i FROM generate_series(1, 9) i WHERE NOT streamfilter_seen('seen', i % 3, '/b');

-- A key with a NULL is never a repeat and not remembered; the result is never NULL.
SELECT streamfilter_seen('seen', NULL, '/a'), streamfilter_seen('seen', NULL, '/a'),
       streamfilter_test('seen', 1, NULL);
ALTER FOREIGN TABLE seen OPTIONS (ADD nulls 'not distinct');
SELECT streamfilter_seen('seen', NULL, '/a') AS s1, streamfilter_seen('seen', NULL, '/a') AS s2,
       streamfilter_seen('seen', 0, '/a') AS zero_is_not_null;

-- ---- arguments ------------------------------------------------------------------------------------
-- Literals are read as the column's type; implicit casts apply.
SELECT streamfilter_test('seen', '1', '/a'), streamfilter_test('seen', 1::smallint, '/a'::varchar),
       streamfilter_test('seen', 1::bigint, '/a'::name);
-- Anything else is an error that names argument and column.
SELECT streamfilter_test('seen', 1.0, '/a');
SELECT streamfilter_test('seen', 1, 2);
SELECT streamfilter_test('seen', 'one', '/a');
SELECT streamfilter_test('seen', 1);
SELECT streamfilter_seen('seen', 1, '/a', 3);
\set VERBOSITY terse
SELECT streamfilter_seen('seen');
\set VERBOSITY default
SELECT streamfilter_seen('seen', VARIADIC ARRAY[1, 2]);
SELECT streamfilter_seen(NULL, 1, '/a');
SELECT streamfilter_seen('missing', 1, '/a');
SELECT streamfilter_seen('pg_class', 1, '/a');
SELECT streamfilter_seen('pg_class', 1, '/a'); -- and again: nothing of the first attempt is left
SELECT streamfilter_seen(0, 1, '/a');
-- The filter may differ from row to row.
CREATE FOREIGN TABLE other (user_id int, url varchar(3)) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '10');
SELECT f, streamfilter_seen(f, 5, '/c') FROM unnest('{seen,other,seen,other}'::regclass[]) f;
-- The typmod of a column is applied to what comes in, as INSERT does.
SELECT streamfilter_seen('other', 6, '/c ') AS s1, streamfilter_seen('other', 6, '/c      ') AS s2;
SELECT streamfilter_seen('other', 6, '/long');

-- ---- evaluated last -------------------------------------------------------------------------------
-- The planner evaluates it after the other conditions on the same table …
CREATE TABLE clicks AS SELECT i AS user_id, '/' || i AS url FROM generate_series(1, 10) i;
EXPLAIN (COSTS OFF)
SELECT * FROM clicks WHERE NOT streamfilter_seen('seen', user_id, url) AND user_id % 2 = 0;
SET streamfilter.lost_rows = warn;
-- … but before a join: the row of user 3 is remembered though the join drops it.
CREATE TABLE users AS SELECT i AS user_id FROM generate_series(1, 2) i;
ANALYZE clicks, users;
SELECT count(*) FROM clicks c JOIN users u USING (user_id)
WHERE NOT streamfilter_seen('seen', c.user_id, 'early ' || c.url);
SELECT streamfilter_test('seen', 3, 'early /3');
-- Join first, in a MATERIALIZED CTE.
WITH joined AS MATERIALIZED (SELECT c.* FROM clicks c JOIN users u USING (user_id))
SELECT count(*) FROM joined WHERE NOT streamfilter_seen('seen', user_id, 'late ' || url);
SELECT streamfilter_test('seen', 2, 'late /2'), streamfilter_test('seen', 3, 'late /3');

-- ---- read-only ------------------------------------------------------------------------------------
BEGIN READ ONLY;
SELECT streamfilter_test('seen', 1, '/a');
SELECT streamfilter_seen('seen', 1, '/a');
ROLLBACK;

-- ---- value and merge ------------------------------------------------------------------------------
-- The shared state as a value; a record stands for the columns of the key.
SELECT streamfilter_value('seen') @> ROW(1, '/a') AS yes,
       streamfilter_value('seen') @> ROW(1, '/z') AS no;
SELECT streamfilter_info(streamfilter_value('seen')) ->> 'kind' AS kind,
       streamfilter_info(streamfilter_value('seen')) ->> 'memory' AS memory;
-- Back into a filter of equal kind, parameters and seed.
CREATE FOREIGN TABLE copy (user_id bigint, url text) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '10', seed '1');
SELECT streamfilter_merge('copy', streamfilter_value('seen'));
SELECT streamfilter_test('copy', 1, '/a') AS yes, streamfilter_test('copy', 1, '/z') AS no;
SELECT streamfilter_merge('copy', streamfilter_add('bloom(memory=64kB, k=10, seed=1)', ROW(1, '/z')));
SELECT streamfilter_test('copy', 1, '/z') AS yes;
SELECT streamfilter_merge('copy', 'bloom(memory=64kB, k=10)');
SELECT streamfilter_merge('copy', 'bloom(memory=64kB, k=9, seed=1)');
SELECT streamfilter_merge('copy', 'sbf(memory=64kB)');
SELECT streamfilter_merge('copy', NULL);

-- ---- rights ---------------------------------------------------------------------------------------
CREATE ROLE regress_streamfilter_user;
SET ROLE regress_streamfilter_user;
SELECT streamfilter_seen('seen', 1, '/a');
SELECT streamfilter_test('seen', 1, '/a');
SELECT streamfilter_value('seen');
SELECT streamfilter_merge('seen', 'bloom(memory=64kB, k=10, seed=1)');
TRUNCATE seen;
RESET ROLE;
CREATE SCHEMA AUTHORIZATION regress_streamfilter_user;
SET ROLE regress_streamfilter_user;
CREATE FOREIGN TABLE regress_streamfilter_user.mine (id int) SERVER streamfilter;
RESET ROLE;
-- INSERT lets remember, SELECT lets test, USAGE on the server lets create.
GRANT INSERT ON seen TO regress_streamfilter_user;
SET ROLE regress_streamfilter_user;
SELECT streamfilter_seen('seen', 1, '/a');
SELECT streamfilter_test('seen', 1, '/a');
RESET ROLE;
REVOKE INSERT ON seen FROM regress_streamfilter_user;
GRANT SELECT ON seen TO regress_streamfilter_user;
SET ROLE regress_streamfilter_user;
SELECT streamfilter_seen('seen', 1, '/a');
SELECT streamfilter_test('seen', 1, '/a');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER streamfilter TO regress_streamfilter_user;
SET ROLE regress_streamfilter_user;
CREATE FOREIGN TABLE regress_streamfilter_user.mine (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
SELECT streamfilter_seen('regress_streamfilter_user.mine', 1);
-- Only a superuser turns the triggers off.
SET streamfilter.enabled = off;
RESET ROLE;
DROP OWNED BY regress_streamfilter_user;
DROP ROLE regress_streamfilter_user;

-- ---- settings -------------------------------------------------------------------------------------
SELECT name, boot_val, unit, context FROM pg_settings WHERE name LIKE 'streamfilter.%' ORDER BY name;
SET streamfilter.enabld = off;

DROP FOREIGN TABLE seen, other, copy;
DROP TABLE clicks, users;
