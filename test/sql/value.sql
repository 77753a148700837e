--
-- The type streamfilter: a filter as a value
--

-- ---- text form: a definition is an empty filter ---------------------------

-- What is not given is derived, and shown.
SELECT 'sbf(memory=64kB, fpr=0.01)'::streamfilter;
SELECT 'sbf(memory=1MB, fpr=0.001, gap=100000)'::streamfilter;
SELECT 'bloom(keys=1000, fpr=0.01)'::streamfilter;
SELECT 'bloom(memory=4kB, k=3, seed=42, nulls=''not distinct'')'::streamfilter;
-- auto: a Bloom filter if it is told the number of keys, a cache-line queue otherwise.
SELECT 'auto(keys=1000)'::streamfilter, 'auto(memory=16kB)'::streamfilter;
-- Spaces, quotes and the order of options do not matter.
SELECT E'  bloom ( k = "3" ,\n memory = \'1024\' ) '::streamfilter;

-- ---- remembering and asking ------------------------------------------------

SELECT streamfilter_add('bloom(memory=1kB, k=3)', 'apple') @> 'apple' AS apple,
       streamfilter_add('bloom(memory=1kB, k=3)', 'apple') @> 'pear' AS pear,
       streamfilter_contains(streamfilter_add('bloom(memory=1kB, k=3)', 42), 42) AS answer;

-- The filter given is not changed: a copy remembers.
WITH empty AS (SELECT 'bloom(memory=1kB, k=3)'::streamfilter AS f),
     one AS (SELECT f, streamfilter_add(f, 1) AS g FROM empty)
SELECT f @> 1 AS before, g @> 1 AS after FROM one;

-- Several columns: a row. Integers of any width are the same key, and so are kinds of text.
WITH f AS (SELECT streamfilter_add('bloom(memory=1kB, k=3)', ROW(7, 'url')) AS f)
SELECT f @> ROW(7, 'url') AS same, f @> ROW(7::bigint, 'url'::varchar) AS wider,
       f @> ROW(7, 'other') AS other, f @> ROW('url', 7) AS swapped
FROM f;

-- Columns as keys, of any type that has a hash operator class.
CREATE TABLE visits (who bigint, page text, at timestamptz, tags text[], extra jsonb);
INSERT INTO visits VALUES
  (1, '/', '2026-01-01 00:00+00', '{a,b}', '{"x": 1}'),
  (2, '/b', '2026-01-02 00:00+00', '{}', '{"x": 2}');
SELECT who, f @> page AS page, g @> at AS at, h @> tags AS tags, i @> extra AS extra,
       j @> ROW(who, page) AS two, k @> visits AS whole_row
FROM visits,
     (SELECT streamfilter_add('bloom(memory=1kB, k=3)', page) AS f,
             streamfilter_add('bloom(memory=1kB, k=3)', at) AS g,
             streamfilter_add('bloom(memory=1kB, k=3)', tags) AS h,
             streamfilter_add('bloom(memory=1kB, k=3)', extra) AS i,
             streamfilter_add('bloom(memory=1kB, k=3)', ROW(who, page)) AS j,
             streamfilter_add('bloom(memory=1kB, k=3)', visits) AS k
      FROM visits WHERE who = 1) AS filters
ORDER BY who;
DROP TABLE visits;

-- NULL keys: nothing is remembered, nothing is known.
SELECT streamfilter_add('bloom(memory=192, k=3)', NULL::text) AS unchanged,
       'bloom(memory=192, k=3)'::streamfilter @> NULL::text AS unknown,
       streamfilter_add(NULL, 1) IS NULL AS no_filter;
-- A row with a NULL in it is never a repeat; with nulls = 'not distinct' NULL is one more value.
SELECT nulls,
       streamfilter_add(f, ROW(1, NULL)) @> ROW(1, NULL) AS repeat,
       streamfilter_add(f, ROW(1, NULL)) @> ROW(2, NULL) AS other,
       streamfilter_add(f, ROW(1, NULL)) @> ROW(NULL, 1) AS swapped
FROM (VALUES ('distinct', 'bloom(memory=1kB, k=3)'::streamfilter),
             ('not distinct', 'bloom(memory=1kB, k=3, nulls=''not distinct'')')) AS v (nulls, f);

-- ---- merging ---------------------------------------------------------------

WITH a AS (SELECT streamfilter_add('bloom(memory=1kB, k=3)', 'left') AS a),
     b AS (SELECT streamfilter_add('bloom(memory=1kB, k=3)', 'right') AS b)
SELECT (a || b) @> 'left' AS "left", (a || b) @> 'right' AS "right", (a || b) @> 'none' AS "none",
       (a || b)::text = streamfilter_union(a, b)::text AS same,
       (streamfilter_info(a || b) -> 'arrivals') AS arrivals
FROM a, b;

-- Only filters of equal kind, parameters and seed can be merged.
SELECT 'bloom(memory=1kB, k=3)'::streamfilter || 'sbf(memory=1kB)'::streamfilter;
SELECT 'bloom(memory=1kB, k=3)'::streamfilter || 'bloom(memory=1kB, k=4)'::streamfilter;
SELECT 'bloom(memory=1kB, k=3)'::streamfilter || 'bloom(memory=1kB, k=3, seed=1)'::streamfilter;

-- ---- what it is ------------------------------------------------------------

SELECT jsonb_pretty(streamfilter_info('sbf(memory=64kB, fpr=0.01)'));
SELECT jsonb_pretty(streamfilter_info(
  streamfilter_add(streamfilter_add('bloom(memory=1kB, keys=100)', 'a'), 'b')));
-- A Bloom filter has no limit of the window (null), and no bound of its rate unless it knows keys.
SELECT streamfilter_info('bloom(memory=1kB, k=3)') ->> 'window_keys' AS window_keys,
       streamfilter_info('bloom(memory=1kB, k=3)') ->> 'fpr_bound' AS fpr_bound;

-- ---- lossless ----------------------------------------------------------------

-- A filled filter carries its body behind the definition.
SELECT streamfilter_add('bloom(memory=192, k=3)', 'x');

CREATE TABLE filters (id int PRIMARY KEY, f streamfilter);
INSERT INTO filters
SELECT 1, streamfilter_agg(i, 'bloom(memory=4kB, k=3)') FROM generate_series(1, 500) i;
INSERT INTO filters
SELECT 2, streamfilter_agg(i, 'sbf(memory=300kB, fpr=0.05, max=3)') FROM generate_series(1, 20000) i;
INSERT INTO filters
SELECT 3, streamfilter_agg(i, 'sbf(memory=1001, seed=18446744073709551615)')
FROM generate_series(1, 50) i;
INSERT INTO filters VALUES (4, 'bloom(memory=1MB, k=1)');
INSERT INTO filters
SELECT 5, streamfilter_agg(i, 'bloom(memory=300kB, k=9)') FROM generate_series(1, 20000) i WHERE i % 2 = 0;

-- Text and back: the same bytes, the same text.
SELECT id, streamfilter_send(f::text::streamfilter) = streamfilter_send(f) AS same_bytes,
       f::text::streamfilter::text = f::text AS same_text,
       length(f::text) AS characters, length(streamfilter_send(f)) AS bytes
FROM filters ORDER BY id;
SELECT count(*) FILTER (WHERE f::text ~ '\\|\n') AS with_backslash_or_newline FROM filters;

-- Binary and back.
\getenv abs_builddir PG_ABS_BUILDDIR
\set file :abs_builddir '/results/value.bin'
COPY filters TO :'file' (FORMAT binary);
CREATE TABLE copied (LIKE filters);
COPY copied FROM :'file' (FORMAT binary);
SELECT id, streamfilter_send(c.f) = streamfilter_send(f.f) AS same_bytes
FROM filters f JOIN copied c USING (id) ORDER BY id;

-- Stored values are compact, and moved out of line like any other: an empty megabyte is small.
SELECT id, streamfilter_info(f) -> 'memory' AS memory,
       pg_column_size(f) < (streamfilter_info(f) ->> 'memory')::int AS compact
FROM filters ORDER BY id;

-- A filter that went through all of it goes on as before.
SELECT bool_and(f @> i) AS no_false_negatives
FROM copied, generate_series(1, 500) i WHERE id = 1;
SELECT id, count(*) FILTER (WHERE f @> i) AS remembered, count(*) FILTER (WHERE NOT f @> -i) AS new
FROM generate_series(19901, 20000) i, copied WHERE id IN (2, 5) GROUP BY id ORDER BY id;
SELECT streamfilter_send(streamfilter_add(c.f, 0)) = streamfilter_send(streamfilter_add(f.f, 0))
         AS same_future
FROM filters f JOIN copied c USING (id) WHERE id = 2;
DROP TABLE filters, copied;

-- ---- where keys come from ------------------------------------------------------

-- Domains count as their base types; enums by their labels.
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE color AS ENUM ('red', 'green');
SELECT streamfilter_add('bloom(memory=1kB, k=3)', 5::positive) @> 5 AS domain,
       streamfilter_add('bloom(memory=1kB, k=3)', 'red'::color) @> 'red'::color AS red,
       streamfilter_add('bloom(memory=1kB, k=3)', 'red'::color) @> 'green'::color AS green;
DROP DOMAIN positive;

-- Parameters of a prepared statement.
PREPARE ask (streamfilter, text) AS SELECT $1 @> $2;
EXECUTE ask (streamfilter_add('bloom(memory=1kB, k=3)', 'x'), 'x');
EXECUTE ask ('bloom(memory=1kB, k=3)', 'x');
DEALLOCATE ask;

-- A type without a hash operator class is no key, however deep it is hidden.
CREATE TYPE spot AS (name text, at point);
SELECT 'bloom(memory=1kB, k=3)'::streamfilter @> '{"a": 1}'::json;
SELECT streamfilter_add('bloom(memory=1kB, k=3)', point '1,2');
SELECT streamfilter_add('bloom(memory=1kB, k=3)', array[point '1,2']);
SELECT streamfilter_add('bloom(memory=1kB, k=3)', ROW('here', point '1,2')::spot);
SELECT streamfilter_add('bloom(memory=1kB, k=3)', ROW('here', ROW(1, point '1,2')));
SELECT streamfilter_add('bloom(memory=1kB, k=3)', 'bloom(memory=1kB, k=3)'::streamfilter);
DROP TYPE spot, color;
-- Neither is text whose collation is undecided.
CREATE TABLE words (a text COLLATE "C", b text COLLATE "POSIX");
INSERT INTO words VALUES ('a', 'b');
SELECT 'bloom(memory=1kB, k=3)'::streamfilter @> (a || b) FROM words;
SELECT 'bloom(memory=1kB, k=3)'::streamfilter @> (a || b COLLATE "C") FROM words;
DROP TABLE words;

-- Few keys are short in filters of any number of slices.
SELECT kind, slices FROM unnest('{bloom, sbf, lru, vqf}'::text[]) kind, unnest('{1, 3, 16, 32, 64, 96}'::int[]) slices
WHERE pg_column_size(streamfilter_add(format('%s(memory=64kB, slices=%s)', kind, slices)::streamfilter, 1)) > 1000;
