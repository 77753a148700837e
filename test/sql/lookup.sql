--
-- Looking up keys: SELECT … FROM filter WHERE <every key column = …>
--
CREATE SCHEMA lookup;
SET search_path = lookup, public;
CREATE FOREIGN TABLE seen (user_id bigint, url text) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000');
INSERT INTO seen VALUES (1, '/a'), (1, '/b'), (2, '/a'), (3, '/c');

-- ---- One key ------------------------------------------------------------------------------------

-- The row, if it (probably) was seen, else none.
SELECT * FROM seen WHERE user_id = 1 AND url = '/b';
SELECT * FROM seen WHERE user_id = 2 AND url = '/b';
SELECT * FROM seen WHERE (url, user_id) = ('/c', 3);
SELECT EXISTS (SELECT FROM seen WHERE '/a' = url AND 2 = user_id);
-- Other conditions are tested on the row.
SELECT * FROM seen WHERE user_id = 1 AND url = '/b' AND user_id > 1;
SELECT * FROM seen WHERE user_id = 1 AND url = '/b' AND url LIKE '%b';
-- NULL equals nothing.
SELECT * FROM seen WHERE user_id = NULL AND url = '/b';
-- The values of a look-up can come from anywhere, as long as they are the same for the whole scan.
SELECT * FROM seen WHERE user_id = (SELECT max(i) FROM generate_series(1, 3) i) AND url = '/' || lower('C');
SELECT * FROM seen WHERE user_id = 1 AND url IN ('/b');
SELECT * FROM seen WHERE user_id = 1 AND url = '/b' AND user_id = 2;
-- The whole row and its system columns.
SELECT seen, tableoid::regclass FROM seen WHERE user_id = 1 AND url = '/b' FOR UPDATE;

-- Without a value for every key column the question has no answer.
SELECT * FROM seen;
\set VERBOSITY terse
SELECT * FROM seen WHERE user_id = 1;
SELECT count(*) FROM seen;
SELECT * FROM seen WHERE user_id = 1 AND url IN ('/a', '/b');
SELECT * FROM seen WHERE user_id = 1 AND url > '/a';
SELECT * FROM seen WHERE user_id = 1 OR url = '/a';
SELECT * FROM seen WHERE user_id = 1.0 AND url = '/a';
SELECT * FROM seen WHERE user_id = random() * 2 AND url = '/a';
EXPLAIN SELECT * FROM seen;
\set VERBOSITY default
CREATE FOREIGN TABLE "Odd Name" ("Key Column" int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '3');
SELECT * FROM "Odd Name";

-- ---- Prepared statements, cursors, functions ----------------------------------------------------

PREPARE find (bigint, text) AS SELECT * FROM seen WHERE user_id = $1 AND url = $2;
EXECUTE find (1, '/a');
EXECUTE find (3, '/a');
EXECUTE find (NULL, '/a');
SET plan_cache_mode = force_generic_plan;
EXECUTE find (1, '/a');
EXECUTE find (3, '/a');
EXPLAIN (COSTS OFF) EXECUTE find (1, '/a');
RESET plan_cache_mode;
-- A plan for any parameters would have to list the filter here, so it is never used.
PREPARE find_or_all (bigint) AS SELECT * FROM seen WHERE (user_id = $1 OR $1 IS NULL) AND url = '/a';
EXECUTE find_or_all (1);
EXECUTE find_or_all (2);
EXECUTE find_or_all (3);
EXECUTE find_or_all (1);
EXECUTE find_or_all (2);
EXECUTE find_or_all (3);
EXECUTE find_or_all (1);
\set VERBOSITY terse
EXECUTE find_or_all (NULL);

BEGIN;
DECLARE again SCROLL CURSOR FOR SELECT * FROM seen WHERE user_id = 1 AND url = '/a';
FETCH ALL FROM again;
FETCH BACKWARD ALL FROM again;
COMMIT;

CREATE FUNCTION was_seen(bigint, text) RETURNS boolean LANGUAGE sql STABLE
RETURN EXISTS (SELECT FROM seen WHERE user_id = $1 AND url = $2);
SELECT i, was_seen(i, '/a') FROM generate_series(1, 3) i;
DO $$
DECLARE found_url text;
BEGIN
  FOR i IN 1..8 LOOP
    SELECT url INTO found_url FROM seen WHERE user_id = i AND url = '/a';
    IF FOUND THEN RAISE NOTICE 'seen: % %', i, found_url; END IF;
  END LOOP;
END $$;

-- ---- Joins --------------------------------------------------------------------------------------

-- The other tables give the values, all of one key together or each a part of it.
CREATE TABLE clicks (at int, user_id int, url varchar(20));
INSERT INTO clicks VALUES (1, 1, '/a'), (2, 1, '/c'), (3, 2, '/a'), (4, 4, '/a'), (5, NULL, '/a'), (6, 3, NULL);
CREATE TABLE users (id bigint, name text);
INSERT INTO users VALUES (1, 'ann'), (2, 'bob'), (3, 'cid');
CREATE TABLE pages (path text, title text);
INSERT INTO pages VALUES ('/a', 'A'), ('/b', 'B'), ('/c', 'C');
ANALYZE clicks, users, pages;

SELECT at FROM clicks c WHERE EXISTS (SELECT FROM seen s WHERE s.user_id = c.user_id AND s.url = c.url) ORDER BY at;
SELECT at FROM clicks c WHERE NOT EXISTS (SELECT FROM seen s WHERE s.user_id = c.user_id AND s.url = c.url) ORDER BY at;
SELECT at FROM clicks WHERE (user_id, url) IN (SELECT user_id, url FROM seen) ORDER BY at;
SELECT at, s.* FROM clicks JOIN seen s USING (user_id, url) ORDER BY at;
SELECT at, s.* FROM clicks LEFT JOIN seen s USING (user_id, url) ORDER BY at;
SELECT at FROM clicks LEFT JOIN seen s USING (user_id, url) WHERE s.user_id IS NULL ORDER BY at;
SELECT at, EXISTS (SELECT FROM seen s WHERE s.user_id = c.user_id AND s.url = c.url) AS seen FROM clicks c ORDER BY at;
SELECT at, l.* FROM clicks c, LATERAL (SELECT s.url, c.at * 2 AS twice FROM seen s
                                       WHERE s.user_id = c.user_id AND s.url = c.url LIMIT 1) l ORDER BY at;
SELECT s.* FROM seen s WHERE (user_id, url) IN (SELECT user_id, url FROM clicks) ORDER BY 1, 2;
SELECT name, title FROM users, pages, seen s WHERE s.user_id = id AND s.url = path ORDER BY 1, 2;
SELECT name, title FROM users, pages WHERE EXISTS (SELECT FROM seen s WHERE s.user_id = id AND s.url = path) ORDER BY 1, 2;
SELECT name, title FROM users, pages WHERE NOT EXISTS (SELECT FROM seen s WHERE s.user_id = id AND s.url = path) ORDER BY 1, 2;
SELECT name, s.url FROM users LEFT JOIN seen s ON s.user_id = id AND s.url = '/a' ORDER BY 1;
SELECT count(*) FROM seen a JOIN seen b USING (user_id, url) WHERE user_id = 1 AND url = '/a';
WITH few AS MATERIALIZED (SELECT * FROM clicks WHERE at < 3) SELECT * FROM few JOIN seen USING (user_id, url);

EXPLAIN (COSTS OFF)
SELECT at FROM clicks c WHERE EXISTS (SELECT FROM seen s WHERE s.user_id = c.user_id AND s.url = c.url);
EXPLAIN (COSTS OFF)
SELECT at FROM clicks LEFT JOIN seen s USING (user_id, url) WHERE s.user_id IS NULL;
-- A subplan has a name of its own since 19.
CREATE FUNCTION explain(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
    RETURN NEXT regexp_replace(line, 'SubPlan \w+', 'SubPlan');
  END LOOP;
END $$;
SELECT explain('SELECT at, EXISTS (SELECT FROM seen s WHERE s.user_id = c.user_id AND s.url = c.url) FROM clicks c');
DROP FUNCTION explain;
EXPLAIN (COSTS OFF, VERBOSE)
SELECT name FROM users LEFT JOIN seen s ON s.user_id = id AND s.url = '/a' AND s.user_id > 1;

-- A join that has to have all rows of the filter has no answer.
SELECT * FROM seen LEFT JOIN clicks USING (user_id, url);
SELECT * FROM seen FULL JOIN clicks USING (user_id, url);
SELECT * FROM seen JOIN users ON user_id = id;
SELECT at FROM clicks c WHERE user_id NOT IN (SELECT user_id FROM seen);

-- ---- Types --------------------------------------------------------------------------------------

-- Numbers of other widths; what does not fit was not seen.
CREATE FOREIGN TABLE numbers (s smallint, i int, r real) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000');
INSERT INTO numbers VALUES (5, 5, 0.5), (5, 5, 0.1), (5, 5, 'NaN');
SELECT * FROM numbers WHERE s = 5::bigint AND i = 5::smallint AND r = 0.5::float8;
SELECT * FROM numbers WHERE s = 65541 AND i = 5 AND r = 0.5::real;
SELECT * FROM numbers WHERE s = 5 AND i = 4294967301 AND r = 0.5::real;
SELECT * FROM numbers WHERE s = 5 AND i = 5 AND r = 1e300;
SELECT * FROM numbers WHERE s = 5 AND i = 5 AND r = 'NaN'::float8;
-- As in every table, 0.1 is not a real.
SELECT * FROM numbers WHERE s = 5 AND i = 5 AND r = 0.1::float8;
SELECT v.* FROM (VALUES (5::bigint, 5::bigint), (65541, 5), (5, 4294967301)) v (a, b)
  JOIN numbers ON s = a AND i = b AND r = 0.5::real;

-- A boolean is a condition by itself.
CREATE FOREIGN TABLE flags (n int, flag boolean) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000');
INSERT INTO flags VALUES (1, true), (2, false);
SELECT * FROM flags WHERE n = 1 AND flag;
SELECT * FROM flags WHERE n = 1 AND flag = true;
SELECT * FROM flags WHERE n = 1 AND NOT flag;
SELECT * FROM flags WHERE n = 2 AND flag = false;
SELECT * FROM flags WHERE n = 2 AND flag IS FALSE;
SELECT f.* FROM (VALUES (1, true), (1, false), (2, false)) v (a, b) JOIN flags f ON n = a AND flag = b;
SELECT f.* FROM (VALUES (1, true), (1, false), (2, false)) v (a, b) JOIN flags f ON n = a AND NOT flag;

-- Kinds of text, domains.
CREATE DOMAIN code AS varchar(5);
CREATE FOREIGN TABLE texts (v varchar(10), c char(5), n name, d code)
  SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000');
INSERT INTO texts VALUES ('v', 'c', 'n', 'd');
SELECT v, c, n, d FROM texts WHERE v = 'v' AND c = 'c' AND n = 'n' AND d = 'd';
SELECT v, c, n, d FROM texts WHERE v = 'v'::text AND c = 'c  ' AND n = 'n'::text AND d = 'd'::code;
SELECT v, c, n, d FROM texts WHERE v = 'v'::name AND c = 'c'::char(9) AND n = 'n'::name AND d = 'd'::varchar;
SELECT v, c, n, d FROM texts WHERE v = 'v ' AND c = 'c' AND n = 'n' AND d = 'd';
-- A name holds 63 bytes; a longer text is not equal to what was cut off.
INSERT INTO texts VALUES ('v', 'c', repeat('n', 70), 'd');
SELECT length(n) FROM texts WHERE v = 'v' AND c = 'c' AND n = repeat('n', 63) AND d = 'd';
SELECT length(n) FROM texts WHERE v = 'v' AND c = 'c' AND n = repeat('n', 64) AND d = 'd';

-- Equality is the column's.
CREATE EXTENSION citext;
CREATE COLLATION anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE FOREIGN TABLE cases (c citext, n text COLLATE anycase)
  SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000');
INSERT INTO cases VALUES ('Citext', 'Collated');
SELECT * FROM cases WHERE c = 'CITEXT' AND n = 'COLLATED';
SELECT v.* FROM (VALUES ('citexT'::citext, 'collateD' COLLATE anycase), ('other', 'collated')) v (a, b)
  JOIN cases ON c = a AND n = b;
-- Another equality is no condition on a key.
SELECT * FROM cases WHERE c::text = 'Citext' AND n = 'Collated';
SELECT * FROM cases WHERE c = 'Citext' AND n = 'Collated' COLLATE "C";
SELECT * FROM seen WHERE user_id = 1 AND url = '/A' COLLATE anycase;
SELECT * FROM seen WHERE user_id = 1 AND url = '/a' COLLATE "C";

-- Points in time: a cast to the column's type must keep the value.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE FOREIGN TABLE times (t timestamptz(0), d date) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000');
INSERT INTO times VALUES ('2026-01-02 00:00+00', '2026-01-02');
SELECT * FROM times WHERE t = '2026-01-02 01:00+01' AND d = '2026-01-02';
SELECT * FROM times WHERE t = date '2026-01-02' AND d = timestamp '2026-01-02 00:00';
SELECT * FROM times WHERE t = date '2026-01-02' AND d = timestamp '2026-01-02 00:01';
-- Finer than the column: not equal.
SELECT * FROM times WHERE t = '2026-01-02 00:00:00.4+00' AND d = '2026-01-02';

-- A value shows as its column has it. Longer than the column: not equal.
SELECT octet_length(c) FROM texts WHERE v = 'v' AND c = 'c'::char(9) AND n = 'n' AND d = 'd';
SELECT v, c, n, d FROM texts WHERE v = 'v' AND c = 'c    longer' AND n = 'n' AND d = 'd';
SELECT v, c, n, d FROM texts WHERE v = 'v' AND c = 'c' AND n = 'n' AND d = 'd    longer';

-- Everything else.
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b text);
CREATE FOREIGN TABLE others (m mood, a int[], p pair, j jsonb, u uuid, r int4range, i inet, c cidr, o regclass, n numeric(6,2))
  SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000');
INSERT INTO others VALUES ('ok', '{1,2}', (1, 'x'), '{"a": 1.0}', '00000000-0000-0000-0000-000000000001', '[1,2]',
                           '10.0.0.1/8', '10.0.0.0/8', 'pg_class', 1.5);
SELECT * FROM others
WHERE m = 'ok' AND a = ARRAY[1, 2] AND p = (1, 'x')::pair AND j = '{"a": 1}' AND u = '{00000000000000000000000000000001}'
  AND r = '[1,3)' AND i = '10.0.0.1/8' AND c = '10.0.0.0/8' AND o = 'pg_class'::regclass AND n = 1.500;
SELECT count(*) FROM others
WHERE m = 'ok' AND a = ARRAY[1, 2] AND p = (1, 'x')::pair AND j = '{"a": 1}' AND u = '{00000000000000000000000000000001}'
  AND r = '[1,3)' AND i = '10.0.0.1/8' AND c = inet '10.0.0.0/8' AND o = 1259 AND n = 1.504;

-- ---- The same answers as a table, whatever the planner thinks of --------------------------------

CREATE TABLE really_seen AS SELECT i AS user_id, '/' || i % 7 AS url FROM generate_series(1, 30) i;
CREATE FOREIGN TABLE maybe_seen (user_id bigint, url text) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', keys '1000');
INSERT INTO maybe_seen SELECT * FROM really_seen;
CREATE TABLE a (x int, y varchar(10), z bigint);
INSERT INTO a SELECT i % 35, '/' || i % 9, i FROM generate_series(1, 80) i;
INSERT INTO a VALUES (NULL, '/1', 1), (1, NULL, 2);
CREATE TABLE b (x bigint, y text, z smallint);
INSERT INTO b SELECT i % 20, '/' || i % 8, i % 40 FROM generate_series(1, 50) i;
CREATE INDEX ON b (x);
ANALYZE a, b;

CREATE FUNCTION differences(query text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE result bigint;
BEGIN
  EXECUTE format('WITH one AS MATERIALIZED (SELECT q::text AS r FROM (%s) q),
                       two AS MATERIALIZED (SELECT q::text AS r FROM (%s) q)
                  SELECT count(*) FROM ((TABLE one EXCEPT ALL TABLE two) UNION ALL
                                        (TABLE two EXCEPT ALL TABLE one)) d',
                 replace(query, 'SEEN', 'maybe_seen'), replace(query, 'SEEN', 'really_seen'))
    INTO result;
  RETURN result;
END $$;
CREATE TABLE queries (query text);
INSERT INTO queries VALUES
 ('SELECT * FROM a JOIN SEEN s ON s.user_id = a.x AND s.url = a.y'),
 ('SELECT * FROM a JOIN SEEN s ON s.user_id = a.z AND s.url = ''/'' || a.x % 7'),
 ('SELECT * FROM a, b, SEEN s WHERE s.user_id = a.x AND s.url = b.y AND a.z = b.z'),
 ('SELECT * FROM a, b, SEEN s WHERE s.user_id = a.x AND a.x = b.x AND s.url = b.y'),
 ('SELECT * FROM a JOIN b USING (x) LEFT JOIN SEEN s ON s.user_id = b.z AND s.url = a.y'),
 ('SELECT * FROM a LEFT JOIN b ON a.x = b.x LEFT JOIN SEEN s ON s.user_id = b.z AND s.url = a.y'),
 ('SELECT * FROM a LEFT JOIN (b JOIN SEEN s ON s.user_id = b.x AND s.url = b.y) ON a.x = b.x'),
 ('SELECT * FROM a LEFT JOIN (b LEFT JOIN SEEN s ON s.user_id = b.x AND s.url = b.y) ON a.x = b.x AND s.user_id > 3'),
 ('SELECT * FROM a FULL JOIN b ON a.x = b.z LEFT JOIN SEEN s ON s.user_id = coalesce(a.x, b.z) AND s.url = b.y'),
 ('SELECT * FROM a WHERE EXISTS (SELECT FROM SEEN s WHERE s.user_id = a.x AND s.url = a.y)'),
 ('SELECT * FROM a WHERE NOT EXISTS (SELECT FROM SEEN s WHERE s.user_id = a.x AND s.url = a.y)'),
 ('SELECT * FROM a, b WHERE EXISTS (SELECT FROM SEEN s WHERE s.user_id = a.x AND s.url = b.y)'),
 ('SELECT * FROM a, b WHERE NOT EXISTS (SELECT FROM SEEN s WHERE s.user_id = a.x AND s.url = b.y)'),
 ('SELECT * FROM a WHERE EXISTS (SELECT FROM SEEN s JOIN b ON s.user_id = b.x AND s.url = b.y WHERE b.z = a.z)'),
 ('SELECT * FROM a WHERE EXISTS (SELECT FROM SEEN s JOIN b ON s.user_id = b.x WHERE s.url = a.y AND b.z = a.z)'),
 ('SELECT *, EXISTS (SELECT FROM SEEN s WHERE s.user_id = a.x AND s.url = a.y) FROM a'),
 ('SELECT *, (SELECT count(*) FROM SEEN s WHERE s.user_id = a.x AND s.url = a.y) FROM a'),
 ('SELECT * FROM a WHERE (x, y) IN (SELECT user_id, url FROM SEEN)'),
 ('SELECT * FROM SEEN WHERE (user_id, url) IN (SELECT x, y FROM a)'),
 ('SELECT * FROM a, LATERAL (SELECT url, a.z FROM SEEN s WHERE s.user_id = a.x AND s.url = a.y LIMIT 1) l'),
 ('SELECT * FROM a LEFT JOIN LATERAL (SELECT url, 7 FROM SEEN s WHERE s.user_id = a.x AND s.url = a.y) l ON true'),
 ('SELECT * FROM a, SEEN s, SEEN t WHERE s.user_id = a.x AND s.url = a.y AND t.user_id = a.z AND t.url = s.url'),
 ('SELECT * FROM a JOIN SEEN s ON s.user_id = a.x AND s.url = a.y AND s.user_id > 5 AND length(s.url) < a.z'),
 ('SELECT * FROM a JOIN SEEN s ON s.user_id = a.x AND s.user_id = a.z AND s.url = a.y'),
 ('SELECT * FROM a JOIN b USING (x) JOIN SEEN s ON s.user_id = x AND s.url = ''/3'''),
 ('SELECT s.user_id, count(*) FROM a JOIN SEEN s ON s.user_id = a.x AND s.url = a.y GROUP BY 1'),
 ('SELECT * FROM a JOIN SEEN s ON s.user_id = a.x AND s.url = a.y UNION SELECT * FROM a JOIN SEEN s ON s.user_id = a.z AND s.url = a.y'),
 ('SELECT * FROM (SELECT DISTINCT x, y FROM a) d JOIN SEEN s ON s.user_id = d.x AND s.url = d.y'),
 ('SELECT * FROM SEEN WHERE user_id = (SELECT min(x) + 3 FROM a) AND url = (SELECT max(y) FROM b WHERE y < ''/4'')');
CREATE FUNCTION differ() RETURNS TABLE (differences bigint, query text) LANGUAGE sql AS
$$ SELECT differences(query), query FROM queries WHERE differences(query) <> 0 $$;

SELECT * FROM differ();
SET enable_nestloop = off;
SELECT * FROM differ();
RESET enable_nestloop;
SET enable_hashjoin = off; SET enable_memoize = off; SET enable_material = off;
SELECT * FROM differ();
SET enable_mergejoin = off; SET enable_seqscan = off;
SELECT * FROM differ();
SET geqo_threshold = 2;
SELECT * FROM differ();
RESET ALL;
SET search_path = lookup, public;
SET join_collapse_limit = 1; SET from_collapse_limit = 1;
SELECT * FROM differ();
-- (Would a difference be noticed?)
DELETE FROM really_seen WHERE user_id = 3;
SELECT count(*) > 10 AS noticed FROM differ();

SET client_min_messages = warning;
DROP SCHEMA lookup CASCADE;
