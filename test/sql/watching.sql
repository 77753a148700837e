-- streamfilter_metrics, streamfilter_progress, streamfilter_memory() and streamfilter_warm().
CREATE TABLE watched (id int, at timestamptz, note text);
INSERT INTO watched SELECT i, '2026-01-01'::timestamptz + i * interval '1 s', NULL FROM generate_series(1, 3000) i;
INSERT INTO watched VALUES (NULL, '2026-01-01', 'no key');
ANALYZE watched;
CREATE FOREIGN TABLE seen_watched (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000', fpr '0.01');

-- ---- warming ----------------------------------------------------------------------------------------
SELECT streamfilter_warm('seen_watched', 'watched');
SELECT count(*) FROM generate_series(1, 3000) i WHERE streamfilter_test('seen_watched', i);
-- Again: nothing new.
SELECT streamfilter_warm('seen_watched', 'watched');
SELECT tested, accepted, discarded FROM streamfilter_stats WHERE filter = 'seen_watched'::regclass;
-- What rolls back is forgotten.
TRUNCATE seen_watched;
BEGIN;
SELECT streamfilter_warm('seen_watched', 'watched', '{id}', 'id <= 100');
SELECT count(*) FROM generate_series(1, 3000) i WHERE streamfilter_test('seen_watched', i);
ROLLBACK;
SELECT count(*) FROM generate_series(1, 3000) i WHERE streamfilter_test('seen_watched', i);
-- A part, from a view, with a cast to the type of the key.
CREATE VIEW small_watched AS SELECT id::smallint AS short FROM watched WHERE id <= 20;
SELECT streamfilter_warm('seen_watched', 'small_watched', '{short}');
SELECT count(*) FROM generate_series(1, 3000) i WHERE streamfilter_test('seen_watched', i);

-- Nothing to read; partitions, in their order; NULLs, which are a key or none; what has no rows.
CREATE TABLE parted_watched (id int, note text) PARTITION BY RANGE (id);
SELECT streamfilter_warm('seen_watched', 'parted_watched');
CREATE TABLE parted_watched_1 PARTITION OF parted_watched FOR VALUES FROM (7000) TO (7100);
CREATE TABLE parted_watched_2 PARTITION OF parted_watched FOR VALUES FROM (7100) TO (7200);
SELECT streamfilter_warm('seen_watched', 'parted_watched_1');
INSERT INTO parted_watched SELECT generate_series(7000, 7199);
SELECT streamfilter_warm('seen_watched', 'parted_watched'), streamfilter_warm('seen_watched', 'parted_watched_2');
SELECT count(*) FROM generate_series(7000, 7199) i WHERE streamfilter_test('seen_watched', i);
CREATE FOREIGN TABLE nulls_watched (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB', nulls 'not distinct');
SELECT streamfilter_warm('nulls_watched', 'watched'), streamfilter_test('nulls_watched', NULL), streamfilter_test('seen_watched', NULL);
CREATE INDEX watched_id ON watched (id);
CREATE TYPE pair_watched AS (id int);
CREATE TABLE wide_watched (id bigint);
\set SHOW_CONTEXT never
SELECT streamfilter_warm('seen_watched', 'watched_id');
SELECT streamfilter_warm('seen_watched', 'pair_watched');
-- There is no place for a cast but a view.
SELECT streamfilter_warm('seen_watched', 'wide_watched');
\set SHOW_CONTEXT errors
DROP FOREIGN TABLE nulls_watched;
DROP TABLE parted_watched, wide_watched;
DROP TYPE pair_watched;

-- Newest last, by the column of the time: a window would not take what is older than its end.
CREATE FOREIGN TABLE recent_watched (id int, at timestamptz OPTIONS (role 'time'))
  SERVER streamfilter OPTIONS (kind 'timer', memory '64kB', window '10 minutes', max_future '100 years', fpr '0.01');
CREATE TABLE shuffled AS SELECT * FROM watched WHERE id IS NOT NULL ORDER BY hashint4(id);
SELECT streamfilter_warm('recent_watched', 'shuffled');
SELECT count(*) FILTER (WHERE i > 2450), count(*) FILTER (WHERE i < 2000) < 50 AS old_are_gone
FROM generate_series(1, 3000) i WHERE streamfilter_test('recent_watched', i, '2026-01-01'::timestamptz + interval '3000 s');

\set SHOW_CONTEXT never
SELECT format('SELECT streamfilter_warm(%s)', arguments) FROM unnest(ARRAY[
  $$NULL, 'watched'$$, $$'seen_watched', NULL$$, $$'seen_watched', 'watched', '{idd}'$$,
  $$'seen_watched', 'watched', '{id,at}'$$, $$'seen_watched', 'watched', '{NULL}'$$, $$'seen_watched', 'watched', '{note}'$$,
  $$'seen_watched', 'recent_watched'$$, $$'watched', 'seen_watched'$$, $$'seen_watched', 'watched', NULL, 'id +'$$,
  $$'seen_watched', 'shuffled', NULL, 'true); DROP TABLE shuffled; SELECT (1'$$]) AS arguments \gexec
-- The condition is one expression, and nothing that only fits between parentheses.
SELECT format('SELECT streamfilter_warm(''seen_watched'', ''watched'', NULL, %L)', condition) FROM unnest(ARRAY[
  $$true) UNION SELECT (1$$, $$true) OR (true$$, $$true ORDER BY 1$$, $$true, false$$, $$true FROM shuffled$$,
  $$true UNION SELECT false$$, $$true AS x$$, '',
  $$id < 5 AND EXISTS (SELECT FROM shuffled s WHERE s.id = t.id) -- some$$]) AS condition \gexec
BEGIN READ ONLY;
SELECT streamfilter_warm('seen_watched', 'watched');
ROLLBACK;
-- Rights are those of the caller.
CREATE ROLE regress_warmer;
GRANT SELECT ON watched TO regress_warmer;
SET ROLE regress_warmer;
SELECT streamfilter_warm('seen_watched', 'watched');
RESET ROLE;
GRANT INSERT ON seen_watched TO regress_warmer;
REVOKE SELECT ON watched FROM regress_warmer;
SET ROLE regress_warmer;
SELECT streamfilter_warm('seen_watched', 'watched');
RESET ROLE;

-- ---- progress: a query looks at the function that reads it ------------------------------------------
SELECT * FROM streamfilter_progress;
CREATE VIEW at_work AS SELECT command, filter, phase, done, total > 0 AS knows_total, unit FROM streamfilter_progress;
SELECT * FROM streamfilter_distinct(NULL::at_work, 'SELECT * FROM at_work', 'lru(memory=1kB)');
SELECT rows FROM streamfilter_evaluate($$SELECT (command, phase, done)::text FROM streamfilter_progress WHERE command = 'evaluate'$$,
  '{lru(memory=1kB)}');
SELECT rows FROM streamfilter_profile($$SELECT (command, phase, done)::text FROM streamfilter_progress WHERE command = 'profile'$$,
  '{lru(memory=1kB)}', 'position');
TRUNCATE seen_watched;
CREATE TABLE told (command text, filter regclass, phase text, done bigint, total bigint, unit text);
CREATE FUNCTION tell(id int) RETURNS bool LANGUAGE sql AS
  'INSERT INTO told SELECT command, filter, phase, done, total, unit FROM streamfilter_progress WHERE $1 % 1000 = 0; SELECT true';
SELECT streamfilter_warm('seen_watched', 'watched', NULL, 'tell(id) AND id IS NOT NULL');
SELECT command, filter, phase, done > 0 AS has_begun, total > 0 AS knows_total, unit FROM told ORDER BY done;
-- Gone after an error, in a subtransaction, too.
SELECT streamfilter_warm('seen_watched', 'watched', NULL, '1 / (id - 2000) > -1');
DO $$BEGIN PERFORM streamfilter_warm('seen_watched', 'watched', NULL, '1 / (id - 2000) > -1');
EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'at work: %', (SELECT count(*) FROM streamfilter_progress); END$$;
SELECT * FROM streamfilter_progress;

-- ---- metrics ----------------------------------------------------------------------------------------
CREATE TRIGGER zz_mark BEFORE INSERT ON shuffled FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_watched', 'id');
INSERT INTO shuffled VALUES (1), (1), (5000), (5000);
SELECT name, unit, help FROM streamfilter_metrics
WHERE labels ->> 'filter' IN ('public.seen_watched') OR labels = '{}' ORDER BY 1, 2;
SELECT name, labels, value FROM streamfilter_metrics
WHERE name ~ 'trigger|memory_bytes|accepted|fpr_asked|asked_keys|readable|enforcing' AND labels ->> 'filter' LIKE '%watched' ORDER BY name, labels::text;
-- One row for each value; all have what they need.
SELECT name, labels, count(*) FROM streamfilter_metrics GROUP BY 1, 2 HAVING count(*) > 1;
SELECT * FROM streamfilter_metrics WHERE name IS NULL OR labels IS NULL OR value IS NULL OR unit IS NULL OR help IS NULL
  OR name !~ '^streamfilter_[a-z_]+$';
SELECT free <= total AND largest_free <= free AND slots_in_use BETWEEN 2 AND slots AS sane FROM streamfilter_memory();
SET ROLE regress_warmer;
SELECT count(*) > 20 AS everybody_sees FROM streamfilter_metrics;
RESET ROLE;

DROP TABLE shuffled, told;
DROP FUNCTION tell;
DROP VIEW at_work, small_watched;
DROP FOREIGN TABLE seen_watched, recent_watched;
DROP TABLE watched;
DROP ROLE regress_warmer;

-- ---- a trigger on a table that has rows --------------------------------------------------------

CREATE FOREIGN TABLE seen_orders (id int, part text) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
CREATE TABLE orders (number int, part text, note text);
-- Nothing to say of an empty one, nor where the transaction may be filling the filter.
CREATE TRIGGER zz BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_orders', 'number', 'part');
DROP TRIGGER zz ON orders;
INSERT INTO orders SELECT i, 'a', 'x' FROM generate_series(1, 10) i;
BEGIN;
INSERT INTO seen_orders SELECT number, part FROM orders;
CREATE TRIGGER zz BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_orders', 'number', 'part');
ROLLBACK;
CREATE TRIGGER zz BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_orders', 'number', 'part');
SELECT streamfilter_warm('public.seen_orders', 'public.orders', ARRAY['number', 'part']);
INSERT INTO orders VALUES (1, 'a'), (11, 'a') RETURNING number;
DROP TRIGGER zz ON orders;
CREATE TRIGGER zz BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_orders', 'number', 'part');
-- Partitions are looked into; rows that are gone do not count.
CREATE FOREIGN TABLE seen_parts (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
CREATE TABLE parts (id int) PARTITION BY LIST (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
INSERT INTO parts VALUES (1);
DELETE FROM parts;
CREATE TRIGGER zz BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_parts');
DROP TRIGGER zz ON parts;
INSERT INTO parts VALUES (1);
CREATE TRIGGER zz BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_parts');
DROP TABLE orders, parts;
DROP FOREIGN TABLE seen_orders, seen_parts;
