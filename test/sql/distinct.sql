--
-- streamfilter_distinct: first occurrences of a query's rows
--
CREATE TABLE clicks (user_id bigint, url text, at int);
INSERT INTO clicks VALUES (1, '/a', 1), (1, '/a', 2), (2, '/a', 3), (1, '/b', 4), (2, '/a', 5), (1, '/a', 6);

-- ---- rows -------------------------------------------------------------------------

-- The first row of every key, in the order of the query.
SELECT * FROM streamfilter_distinct(NULL::clicks, 'SELECT * FROM clicks ORDER BY at',
                                    'sbf(memory=64kB)', '{user_id,url}');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'SELECT * FROM clicks ORDER BY at',
                                    'sbf(memory=64kB)', '{url}');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'SELECT * FROM clicks ORDER BY at DESC',
                                    'sbf(memory=64kB)', '{user_id}');
-- Without a key: all columns.
SELECT count(*) FROM streamfilter_distinct(NULL::clicks, 'TABLE clicks', 'sbf(memory=64kB)');
SELECT count(*) FROM streamfilter_distinct(NULL::clicks, 'TABLE clicks UNION ALL TABLE clicks',
                                           'sbf(memory=64kB)');
-- One value per row: a scalar type.
SELECT * FROM streamfilter_distinct(NULL::text, 'SELECT url FROM clicks ORDER BY at', 'sbf(memory=64kB)');
-- Rows without a named type: type record, and a column definition list.
SELECT * FROM streamfilter_distinct(NULL::record,
  'SELECT url, count(*) FROM clicks GROUP BY url, user_id ORDER BY 1, 2', 'sbf(memory=64kB)')
  AS t (url text, n bigint);
-- In the select list, and joined to what gives its query.
SELECT streamfilter_distinct(NULL::int, 'SELECT at % 2 FROM clicks ORDER BY at', 'sbf(memory=64kB)');
SELECT u, d.url
FROM (VALUES (1), (2)) AS v (u),
     streamfilter_distinct(NULL::clicks, format('SELECT * FROM clicks WHERE user_id = %s ORDER BY at', u),
                           'sbf(memory=64kB)', '{url}') AS d
ORDER BY u, d.at;

-- Keys that the prototype remembers have been there before.
SELECT * FROM streamfilter_distinct(NULL::text, 'SELECT url FROM clicks ORDER BY at',
                                    streamfilter_add('bloom(memory=1kB, k=5)', '/a'));
-- A Bloom filter that is large enough gives what DISTINCT gives; a small filter of constant memory
-- loses some rows (false positives) and lets some pass twice (false negatives).
SELECT count(*) FROM streamfilter_distinct(NULL::int, 'SELECT i % 10000 FROM generate_series(1, 50000) i',
                                           'bloom(memory=64kB, k=10)');
SELECT count(*) > 10000 AS some_twice
FROM streamfilter_distinct(NULL::int, 'SELECT i % 10000 FROM generate_series(1, 50000) i',
                           'sbf(memory=4kB, fpr=0.01)');
-- Rows go through it many at a time: the first of each key, those without one between them, and all in their order.
CREATE TABLE many AS SELECT i AS id, CASE WHEN i % 7 > 0 THEN i % 300 END AS key, 'row ' || i AS name FROM generate_series(1, 1000) i;
WITH kept AS (
  SELECT d.*, lag(id) OVER (ORDER BY ordinality) AS before
  FROM streamfilter_distinct(NULL::many, 'SELECT * FROM many ORDER BY id', 'bloom(memory=64kB, k=10)', '{key}') WITH ORDINALITY AS d)
SELECT count(*), count(*) FILTER (WHERE first IS NULL) AS wrong, count(*) FILTER (WHERE kept IS NULL) AS lost,
       count(*) FILTER (WHERE kept.before > kept.id) AS out_of_order
FROM kept FULL JOIN (SELECT * FROM many AS m WHERE key IS NULL OR id = (SELECT min(id) FROM many WHERE key = m.key)) AS first USING (id, name);
DROP TABLE many;

-- ---- NULLs --------------------------------------------------------------------------

-- A row with a NULL in its key is always kept; with nulls = 'not distinct' NULL is a value.
SELECT 'distinct' AS nulls, count(*)
FROM streamfilter_distinct(NULL::int, 'SELECT NULL::int FROM clicks', 'bloom(memory=1kB, k=5)')
UNION ALL
SELECT 'not distinct', count(*)
FROM streamfilter_distinct(NULL::int, 'SELECT NULL::int FROM clicks',
                           'bloom(memory=1kB, k=5, nulls=''not distinct'')');

-- ---- types of columns -------------------------------------------------------------------

-- Equality is that of the query's columns: type and collation.
SELECT * FROM streamfilter_distinct(NULL::numeric, 'VALUES (1.0), (1.00), (2)', 'bloom(memory=1kB, k=5)');
CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT * FROM streamfilter_distinct(NULL::text, $$VALUES ('a' COLLATE ignore_case), ('A'), ('b')$$,
                                    'bloom(memory=1kB, k=5)');
DROP COLLATION ignore_case;
-- Dropped columns are no columns. Implicit casts are applied: kinds of text, domains, wider numbers.
CREATE DOMAIN site_path AS varchar CHECK (VALUE LIKE '/%');
CREATE TABLE visits (gone int, url text, who name);
ALTER TABLE visits DROP gone;
INSERT INTO visits VALUES ('/a', 'ann'), ('/a', 'bob');
SELECT * FROM streamfilter_distinct(NULL::visits, 'SELECT url::site_path, who FROM visits', 'bloom(memory=1kB, k=5)');
SELECT * FROM streamfilter_distinct(NULL::visits, 'TABLE visits', 'bloom(memory=1kB, k=5)', '{url}');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'SELECT 1, url::varchar, 2::int2 FROM clicks', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::site_path, 'SELECT url FROM clicks', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::site_path, $$SELECT 'a'$$, 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::record, 'SELECT url FROM clicks', 'sbf(memory=64kB)') AS t (u varchar(1));
-- Anything else has to be cast by the query.
SELECT * FROM streamfilter_distinct(NULL::clicks, 'SELECT 1.5, url, at FROM clicks', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'SELECT user_id, url FROM clicks', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::int, 'SELECT url AS "Url" FROM clicks', 'sbf(memory=64kB)');
CREATE DOMAIN late_click AS clicks CHECK ((VALUE).at > 3);
SELECT * FROM streamfilter_distinct(NULL::late_click, 'TABLE clicks', 'sbf(memory=64kB)');
DROP DOMAIN late_click;

-- ---- bad arguments ----------------------------------------------------------------------

SELECT * FROM streamfilter_distinct(NULL::clicks, NULL, 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'TABLE clicks', NULL);
SELECT * FROM streamfilter_distinct(NULL::clicks, 'TABLE clicks', 'sbf(memory=64kB)', '{user_it}');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'TABLE clicks', 'sbf(memory=64kB)', '{country}');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'TABLE clicks', 'sbf(memory=64kB)', '{url,url}');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'TABLE clicks', 'sbf(memory=64kB)', '{url,NULL}');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'TABLE clicks', 'sbf(memory=64kB)', '{}');
SELECT * FROM streamfilter_distinct(NULL::json, 'SELECT ''1''::json', 'sbf(memory=64kB)');
SELECT streamfilter_distinct(NULL::record, 'TABLE clicks', 'sbf(memory=64kB)');
-- The query must be one SELECT.
SELECT * FROM streamfilter_distinct(NULL::clicks, '', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'TABLE clicks; TABLE clicks', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'DELETE FROM clicks RETURNING *', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'SELECT * INTO other FROM clicks', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::text, 'SHOW work_mem', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::clicks, 'SELECT * FROM no_such_table', 'sbf(memory=64kB)');
SELECT * FROM streamfilter_distinct(NULL::int, 'SELECT 1 / (3 - i) FROM generate_series(1, 5) i', 'sbf(memory=64kB)');

-- It runs with the rights of the caller.
CREATE ROLE regress_streamfilter_reader;
SET ROLE regress_streamfilter_reader;
SELECT * FROM streamfilter_distinct(NULL::text, 'SELECT url FROM clicks', 'sbf(memory=64kB)');
RESET ROLE;
DROP ROLE regress_streamfilter_reader;
DROP TABLE clicks, visits;
DROP DOMAIN site_path;
