--
-- Kind clq with a window of time. See docs/kinds.md.
--

-- A tick is a fifteenth of the window: here one minute.
CREATE FOREIGN TABLE recent (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '64kB', window '15 minutes', seed '1');

-- ---- how long a key is remembered ---------------------------------------------------------------
SELECT streamfilter_seen('recent', 1, '2026-01-01 12:00+00') AS first,
       streamfilter_seen('recent', 1, '2026-01-01 12:14:59+00') AS within,
       streamfilter_test('recent', 1, '2026-01-01 12:16+00') AS a_tick_later,
       streamfilter_seen('recent', 1, '2026-01-01 12:16+00') AS again;
-- The window counts from the row that was accepted: repeats do not prolong it.
SELECT streamfilter_seen('recent', 2, '2026-01-01 12:16+00') AS first,
       streamfilter_seen('recent', 2, '2026-01-01 12:30+00') AS repeat,
       streamfilter_seen('recent', 2, '2026-01-01 12:32+00') AS new_again;
-- Late rows are remembered for what is left of their own window, or not at all.
SELECT streamfilter_seen('recent', 3, '2026-01-01 12:25+00') AS late,
       streamfilter_test('recent', 3, '2026-01-01 12:39+00') AS within,
       streamfilter_test('recent', 3, '2026-01-01 12:41+00') AS after;
SELECT streamfilter_seen('recent', 4, '2026-01-01 12:00+00') AS too_late;
SELECT streamfilter_seen('recent', 4, '2026-01-01 12:00+00') AS still;
-- A test changes nothing, whatever time it asks for.
SELECT streamfilter_test('recent', 2, '2036-01-01 12:00+00') AS then,
       streamfilter_test('recent', 2, '2026-01-01 12:33+00') AS now;
-- Rows.
INSERT INTO recent SELECT i % 100, '2026-01-01 13:00+00'::timestamptz + i * interval '100 ms'
FROM generate_series(1, 1000) AS i;
SELECT accepted, discarded, distinct_estimate FROM streamfilter_stats WHERE filter = 'recent'::regclass;

-- ---- within a transaction -----------------------------------------------------------------------
BEGIN;
SELECT streamfilter_seen('recent', 1001, '2026-01-01 14:00+00') AS first,
       streamfilter_seen('recent', 1001, '2026-01-01 14:10+00') AS within,
       streamfilter_seen('recent', 1001, '2026-01-01 14:20+00') AS after;
ROLLBACK;
SELECT streamfilter_test('recent', 1001, '2026-01-01 14:20+00') AS rolled_back;

-- ---- only a window makes use of time -------------------------------------------------------------
CREATE FOREIGN TABLE without_window (id int, at timestamptz OPTIONS (role 'time'))
  SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', seed '1');
CREATE FOREIGN TABLE of_the_clock (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', window '1 hour', seed '1');
SELECT streamfilter_seen('of_the_clock', 1) AS first, streamfilter_seen('of_the_clock', 1) AS repeat;
-- Single keys are forgotten that are in the window now.
INSERT INTO of_the_clock VALUES (7), (8);
DELETE FROM of_the_clock WHERE id = 7;
SELECT streamfilter_test('of_the_clock', 7) AS forgotten, streamfilter_test('of_the_clock', 8) AS kept;
CREATE FOREIGN TABLE plain (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');

-- ---- values and their text ----------------------------------------------------------------------
SELECT split_part('clq(window=10 minutes, memory=4kB, seed=1)'::streamfilter::text, ':', 1) AS text;
SELECT ('clq(window=1 hour, memory=4kB, seed=1)'::streamfilter::text)::streamfilter::text =
       'clq(window=1 hour, memory=4kB, seed=1)'::streamfilter::text AS the_same;
SELECT a || b @> 1 AS of_a, a || b @> 150 AS of_b, a || b @> 1000 AS of_none
FROM (SELECT streamfilter_agg(i, 'clq(window=1 hour, memory=16kB, seed=1)') AS a
      FROM generate_series(1, 100) AS i) AS one,
     (SELECT streamfilter_agg(i, 'clq(window=1 hour, memory=16kB, seed=1)') AS b
      FROM generate_series(101, 200) AS i) AS other;

-- ---- errors -------------------------------------------------------------------------------------
SELECT 'clq(window=1000 rows)'::streamfilter;
SELECT 'clq(window=1 hour, bits=12, bucket=31)'::streamfilter;
SELECT 'clq(window=0 s)'::streamfilter;
SELECT 'clq(window=1 hour, tick=1 minute)'::streamfilter;

DROP FOREIGN TABLE recent, without_window, of_the_clock, plain;
