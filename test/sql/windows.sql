--
-- Windows of time: how long they are, and how far an event may move them
--

-- ---- how long windows are ----------------------------------------------------------------------------
-- As the server reads intervals; a month has 30 days, as where it compares intervals.
CREATE FUNCTION window_of(text) RETURNS interval LANGUAGE sql
AS $$ SELECT (streamfilter_info(format('timer(window=%L, tick=%1$L, k=3)', $1)::streamfilter)->'parameters'->>'window')::interval $$;
SELECT given, window_of(given) AS "window", window_of(given) = given::interval AS same
FROM unnest('{00:10, 1 month, 1 day 2 hours, 1 year 2 mons 3 days 04:05:06.789, 2 weeks, 90 min, 1.5 hours, 1h 30m,
  1h30m, 250 ms, 250 us, 00:00:10.5}'::text[]) AS given;
-- What is printed reads the same, in values and in definitions.
SELECT split_part('timer(window="1 month", tick="1 day 2 hours", k=3)'::streamfilter::text, ':', 1) AS text;
SELECT t::streamfilter::text = t AS same FROM (SELECT 'timer(window="1 month", tick="02:30", k=3)'::streamfilter::text AS t) v;
CREATE FOREIGN TABLE monthly (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '4kB', window '1 month', max_future '1 day 02:00', fpr '0.01');
SELECT ftoptions FROM pg_foreign_table WHERE ftrelid = 'monthly'::regclass;
SELECT params->>'window' AS "window" FROM streamfilter_stats WHERE filter = 'monthly'::regclass;
DROP FOREIGN TABLE monthly;
\set VERBOSITY terse
SELECT format('SELECT ''timer(window="%s", k=3)''::streamfilter', given)
FROM unnest('{10, 10 fortnights, 1 day ago, 1 day 5, 1 day -2 hours, PT10M, 00:60, 1e9 years}'::text[]) AS given \gexec
\set VERBOSITY default
SELECT 'timer(window="0:00", k=3)'::streamfilter;

-- ---- an event of the year 2099 -------------------------------------------------------------------
CREATE FOREIGN TABLE recent (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', keys '1000', window '10 minutes', lateness '10 minutes', tick '1 minute', seed '1');
CREATE FOREIGN TABLE recent_clq (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '64kB', window '10 minutes', lateness '10 minutes', seed '1', fpr '0.01');
-- Minutes from eight minutes ago on.
CREATE TABLE beginning AS SELECT now() - interval '8 minutes' AS at;
CREATE FUNCTION minute(int) RETURNS timestamptz STABLE LANGUAGE sql AS $$ SELECT at + $1 * interval '1 minute' FROM beginning $$;
CREATE TABLE events (filter regclass, id int, at timestamptz);
INSERT INTO events SELECT filter, id, at FROM unnest('{recent, recent_clq}'::regclass[]) AS filter, (VALUES
  (1, minute(0)), (2, minute(1)), (3, '2999-01-01 00:00+00'), (1, minute(5)),
  (4, minute(6)), (4, minute(7)), (3, '2999-01-01 00:00+00'), (3, '2999-01-02 00:00+00')) AS v(id, at);
-- It is judged as one of now. Each in a transaction of its own.
SELECT format('SELECT %L AS filter, %s AS id, %L AS at, streamfilter_seen(%1$L, %2$s, %4$s)', filter, id, replace(what, '''', ''), what)
FROM (SELECT filter, id, at, CASE WHEN at > '2900-01-01' THEN '''2999-01-01 00:00+00''' ELSE format('minute(%s)', floor(extract(epoch FROM at - minute(0)) / 60)) END AS what FROM events) e
ORDER BY filter, at > '2900-01-01', at \gexec
SELECT filter, ahead FROM streamfilter_stats WHERE filter::text LIKE 'recent%' ORDER BY 1;
-- Looking it up asks for that time.
SELECT streamfilter_test('recent', 4, '2999-01-01 00:00+00') AS then, streamfilter_test('recent', 4, minute(8)) AS now;
-- By INSERT, in batches, and by a trigger.
TRUNCATE recent;
INSERT INTO recent VALUES (1, minute(0)), (2, '2999-01-01 00:00+00'), (3, minute(1));
INSERT INTO recent VALUES (1, minute(2)), (3, minute(2)) RETURNING id;
INSERT INTO recent VALUES (4, '2999-01-01 00:00+00') RETURNING id;
CREATE TABLE t (id int, at timestamptz);
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('recent');
INSERT INTO t VALUES (5, '2999-01-01 00:00+00'), (1, minute(3)), (6, minute(3));
INSERT INTO t VALUES (5, '2999-01-01 00:00+00'), (6, minute(4));
SELECT id FROM t;
SELECT id FROM (VALUES (7, '2999-01-01 00:00+00'::timestamptz), (8, minute(4)), (8, minute(5))) AS v(id, at)
WHERE NOT streamfilter_seen('recent', id, at);
CREATE TABLE staged AS SELECT 10 + i % 3 AS id, CASE i WHEN 1 THEN '2999-01-01 00:00+00' ELSE minute(6) END AS at
FROM generate_series(0, 5) AS i;
SELECT id FROM staged WHERE NOT streamfilter_seen('recent', id, at);
SELECT ahead FROM streamfilter_stats WHERE filter = 'recent'::regclass;
-- By default max_future is one tick, at least a second.
SELECT streamfilter_seen('recent', 1, now()) AS now, streamfilter_seen('recent', 1, now() + interval '9 minutes') AS ahead,
       streamfilter_seen('recent', 1, now() + interval '8 minutes') AS ahead;
-- 'infinity' means now, too, and is nothing to be told.
SELECT streamfilter_seen('recent', 20, 'infinity') AS first, streamfilter_seen('recent', 1, now() + interval '9 minutes') AS remembered;
SELECT ahead FROM streamfilter_stats WHERE filter = 'recent'::regclass;

-- ---- the option -----------------------------------------------------------------------------------
-- Changing it keeps the state.
ALTER FOREIGN TABLE recent OPTIONS (ADD max_future '2000 years');
SELECT streamfilter_test('recent', 1, now() + interval '9 minutes') AS remembered, streamfilter_seen('recent', 21, '2999-01-01 00:00+00') AS moved;
SELECT streamfilter_test('recent', 1, now() + interval '9 minutes') AS forgotten;
TRUNCATE recent;
ALTER FOREIGN TABLE recent OPTIONS (SET max_future '0 s');
SELECT streamfilter_seen('recent', 1, now() - interval '1 minute') AS first, streamfilter_seen('recent', 2, now() + interval '1 minute') AS ahead;
-- Numbers are of any clock, so there is no default for them.
CREATE FOREIGN TABLE of_any_clock (id int, at bigint OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', keys '1000', window '1 s', fpr '0.01');
SELECT streamfilter_seen('of_any_clock', 1, 5e18::bigint) AS first, streamfilter_seen('of_any_clock', 1, 5e18::bigint + 2000000) AS later;
SELECT ahead FROM streamfilter_stats WHERE filter = 'of_any_clock'::regclass;
ALTER FOREIGN TABLE of_any_clock OPTIONS (ADD max_future '1 hour');
SELECT streamfilter_seen('of_any_clock', 2, 6e18::bigint) AS ahead;
\set VERBOSITY terse
ALTER FOREIGN TABLE recent OPTIONS (SET max_future '10 rows');
ALTER FOREIGN TABLE recent OPTIONS (SET max_future '-1 s');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'timer', memory '4kB', window '100 rows', max_future '1 hour');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (memory '4kB', max_future '1 hour');

-- ---- events that come late -----------------------------------------------------------------------
-- Nine and ten minutes late, nine minutes apart: that is in the window, if events may come so late.
\set VERBOSITY default
CREATE FOREIGN TABLE in_order (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', keys '1000', window '10 minutes', fpr '0.01');
CREATE FOREIGN TABLE out_of_order (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', keys '1000', window '10 minutes', lateness '10 minutes', fpr '0.01');
CREATE FOREIGN TABLE out_of_order_clq (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '64kB', window '10 minutes', lateness '10 minutes', fpr '0.01');
CREATE TEMP VIEW filters AS
SELECT unnest('{in_order, out_of_order, out_of_order_clq}'::regclass[]) AS filter;
INSERT INTO in_order VALUES (0, '2020-01-01 12:00+00');
INSERT INTO out_of_order VALUES (0, '2020-01-01 12:00+00');
INSERT INTO out_of_order_clq VALUES (0, '2020-01-01 12:00+00');
SELECT filter, streamfilter_seen(filter, 1, '2020-01-01 11:51+00'::timestamptz) AS first FROM filters;
SELECT filter, streamfilter_seen(filter, 2, '2020-01-01 12:10+00'::timestamptz) AS clock FROM filters;
SELECT filter, streamfilter_seen(filter, 1, '2020-01-01 12:00+00'::timestamptz) AS again FROM filters;
-- Further behind the latest than lateness: it passes, and is counted. At the edge it is known.
SELECT filter, streamfilter_seen(filter, 3, '2020-01-01 11:49+00'::timestamptz) AS first FROM filters;
SELECT filter, streamfilter_seen(filter, 4, '2020-01-01 11:59:50+00'::timestamptz) AS first FROM filters;
SELECT filter, streamfilter_seen(filter, 3, '2020-01-01 11:49+00'::timestamptz) AS again FROM filters;
SELECT filter, streamfilter_seen(filter, 4, '2020-01-01 12:10+00'::timestamptz) AS again FROM filters;
SELECT filter, streamfilter_seen(filter, 5, NULL) AS now FROM filters;
SELECT filter, late FROM streamfilter_stats WHERE filter IN (SELECT filter FROM filters) ORDER BY filter::text;
-- Late by an event of the same transaction.
BEGIN;
INSERT INTO in_order VALUES (6, '2020-01-01 12:00+00');
ROLLBACK;
TRUNCATE in_order;
INSERT INTO in_order VALUES (6, '2020-01-01 12:00+00'), (7, '2020-01-01 11:40+00'), (8, '2020-01-01 11:55+00');
INSERT INTO in_order VALUES (7, '2020-01-01 11:41+00'), (8, '2020-01-01 12:01+00') RETURNING id;
SELECT late FROM streamfilter_stats WHERE filter = 'in_order'::regclass;
SELECT sum(value) FROM streamfilter_metrics WHERE name = 'streamfilter_late_total';
SELECT params->>'window' AS window, params->>'lateness' AS lateness FROM streamfilter_stats
WHERE filter = 'out_of_order'::regclass;
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'timer', memory '4kB', window '100 rows', lateness '1 hour');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'timer', memory '4kB', window '1 hour', lateness '100 rows');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '4kB', lateness '1 hour');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '4kB', lateness '1 hour');

-- ---- judged by its own time ----------------------------------------------------------------------
-- Events on whole minutes, up to 12 late, against the rule itself: one transaction each, all in one, with savepoints that roll back,
-- in one statement. Windows and lateness are 7 ticks of a minute. Late is what is behind the newest event that was kept; in kind clq, the
-- newest that was judged, once it is committed.
CREATE TABLE stream AS SELECT n, n / 10 AS minute, abs(hashint4(n)) % 40 AS id,
  CASE WHEN hashint4(n + 10000) % 3 = 0 THEN abs(hashint4(n + 20000)) % 13 ELSE 0 END AS late FROM generate_series(1, 2000) n;
ALTER TABLE stream ADD at timestamptz;
UPDATE stream SET at = '2020-01-01 00:00+00'::timestamptz + (minute - late) * interval '1 minute';
CREATE TABLE expected (n int);
DO $$
DECLARE e stream; known timestamptz[]; clock timestamptz = '2000-01-01';
BEGIN
  FOR e IN SELECT * FROM stream ORDER BY n LOOP
    CONTINUE WHEN clock - e.at <= interval '7 minutes' AND known[e.id] - e.at BETWEEN interval '-7 minutes' AND interval '7 minutes';
    INSERT INTO expected VALUES (e.n);
    clock := greatest(clock, e.at);
    known[e.id] := greatest(known[e.id], e.at);
  END LOOP;
END $$;
CREATE TABLE stored (n int, id int, at timestamptz);
CREATE FUNCTION compare_ways(filter text, lost OUT bigint, twice OUT bigint, kept OUT bigint) LANGUAGE sql
AS $$ SELECT count(*) FILTER (WHERE s.n IS NULL), count(*) FILTER (WHERE e.n IS NULL), count(s.n) FROM stored s FULL JOIN expected e USING (n) $$;
CREATE PROCEDURE one_by_one() LANGUAGE plpgsql AS $$
DECLARE e stream;
BEGIN
  FOR e IN SELECT * FROM stream ORDER BY n LOOP INSERT INTO stored VALUES (e.n, e.id, e.at); COMMIT; END LOOP;
END $$;
CREATE PROCEDURE with_savepoints() LANGUAGE plpgsql AS $$
DECLARE e stream;
BEGIN
  FOR e IN SELECT * FROM stream ORDER BY n LOOP
    BEGIN
      INSERT INTO stored SELECT 0, id, e.at + interval '6 minutes' FROM generate_series(0, 39, 7) id;
      RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    INSERT INTO stored VALUES (e.n, e.id, e.at);
  END LOOP;
END $$;
CREATE FOREIGN TABLE window_vqf (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'vqf', memory '16kB', slices '1', fpr '1e-6', window '7 minutes', lateness '7 minutes');
CREATE FOREIGN TABLE window_timer (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', slices '1', keys '1000', fpr '1e-6', window '7 minutes', lateness '7 minutes', tick '1 minute');
CREATE FOREIGN TABLE window_clq (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '64kB', slices '1', fpr '1e-6', window '7 minutes', lateness '7 minutes');
SET client_min_messages = error;
SELECT format(what, filter) FROM unnest('{window_vqf, window_timer, window_clq}'::text[]) WITH ORDINALITY AS f(filter, i), unnest(ARRAY[
  $$CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON stored FOR EACH ROW EXECUTE FUNCTION streamfilter_discard(%1$L)$$,
  $$CALL one_by_one()$$,
  $$SELECT * FROM compare_ways(%1$L)$$,
  $$TRUNCATE stored, %1$I$$,
  $$CALL with_savepoints()$$,
  $$SELECT * FROM compare_ways(%1$L)$$,
  $$TRUNCATE stored, %1$I$$,
  $$INSERT INTO stored SELECT n, id, at FROM stream ORDER BY n$$,
  $$SELECT * FROM compare_ways(%1$L)$$,
  $$TRUNCATE stored$$]) WITH ORDINALITY AS w(what, j) ORDER BY i, j \gexec
-- Ahead of the clock in a fresh slice, then in time; late, then ahead; late beside a repeat.
CREATE FUNCTION minutes(text) RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() + ($1 || ' minutes')::interval $$;
SELECT format(what, filter) FROM unnest('{window_vqf, window_timer, window_clq}'::text[]) WITH ORDINALITY AS f(filter, i), unnest(ARRAY[
  $$TRUNCATE %1$I$$,
  $$CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON stored FOR EACH ROW EXECUTE FUNCTION streamfilter_discard(%1$L)$$,
  $$INSERT INTO stored VALUES (1, 1, minutes('900'))$$,
  $$INSERT INTO stored VALUES (2, 1, now())$$,
  $$INSERT INTO stored VALUES (3, 2, '1970-01-01'), (4, 2, minutes('900'))$$,
  $$INSERT INTO stored VALUES (5, 3, '1970-01-01'), (6, 3, 'infinity')$$,
  $$INSERT INTO stored VALUES (7, 4, '1970-01-01'), (8, 4, NULL)$$,
  $$INSERT INTO stored VALUES (9, 5, now())$$,
  $$INSERT INTO stored VALUES (10, 5, minutes('-300'))$$,
  $$SELECT array_agg(n ORDER BY n) FROM stored$$,
  $$TRUNCATE stored$$]) WITH ORDINALITY AS w(what, j) ORDER BY i, j \gexec
RESET client_min_messages;
DROP TABLE stream, expected, stored;
DROP FOREIGN TABLE window_vqf, window_timer, window_clq;
DROP FUNCTION compare_ways, minutes;
DROP PROCEDURE one_by_one, with_savepoints;

-- ---- a clock that goes back ----------------------------------------------------------------------
-- By the server's clock, and from another, three hours ahead: what is later than it must not be too late.
CREATE FOREIGN TABLE of_the_future (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', keys '1000', window '1 hour', seed '1', max_future 'infinity');
CREATE FOREIGN TABLE of_the_future_clq (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '64kB', window '1 hour', seed '1', max_future 'infinity');
CREATE FOREIGN TABLE by_clock (id int) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', keys '1000', window '1 hour', seed '1');
CREATE FOREIGN TABLE by_clock_clq (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', window '1 hour', seed '1');
INSERT INTO of_the_future VALUES (1, now() + interval '10000 s');
INSERT INTO of_the_future_clq VALUES (1, now() + interval '10000 s');
INSERT INTO by_clock VALUES (0);
INSERT INTO by_clock_clq VALUES (0);
SELECT filter, state FROM streamfilter_stats WHERE filter::text LIKE 'by_clock%' ORDER BY filter::text;
SELECT streamfilter_merge('by_clock', streamfilter_value('of_the_future'));
SELECT streamfilter_merge('by_clock_clq', streamfilter_value('of_the_future_clq'));
\set VERBOSITY terse
SELECT streamfilter_seen('by_clock', 2) AS first;
SELECT streamfilter_seen('by_clock_clq', 2) AS first;
\set VERBOSITY default
SELECT filter, state, late FROM streamfilter_stats WHERE filter::text LIKE 'by_clock%' ORDER BY filter::text;
SELECT labels ->> 'filter' AS filter, name, value FROM streamfilter_metrics
WHERE name IN ('streamfilter_loaded', 'streamfilter_clock_went_back') AND labels ->> 'filter' LIKE '%by_clock%' ORDER BY 1, 2;
-- They are remembered at once, and told of once.
SELECT streamfilter_seen('by_clock', 2) AS again, streamfilter_seen('by_clock_clq', 2) AS again;
INSERT INTO by_clock VALUES (3), (3), (2) RETURNING id;
INSERT INTO by_clock_clq VALUES (3), (3), (2) RETURNING id;
SELECT streamfilter_seen('by_clock', 3) AS again, streamfilter_seen('by_clock_clq', 3) AS again;
-- TRUNCATE ends that, also for what the same transaction adds.
BEGIN;
TRUNCATE by_clock, by_clock_clq;
INSERT INTO by_clock VALUES (3), (3) RETURNING id;
INSERT INTO by_clock_clq VALUES (3), (3) RETURNING id;
COMMIT;
SELECT streamfilter_seen('by_clock', 3) AS again, streamfilter_seen('by_clock', 4) AS first;
SELECT streamfilter_seen('by_clock_clq', 3) AS again, streamfilter_seen('by_clock_clq', 4) AS first;
SELECT filter, state, late FROM streamfilter_stats WHERE filter::text LIKE 'by_clock%' ORDER BY filter::text;
DROP FOREIGN TABLE of_the_future, of_the_future_clq, by_clock, by_clock_clq;

DROP TABLE events, t, staged;
DROP VIEW filters;
DROP FOREIGN TABLE in_order, out_of_order, out_of_order_clq;
DROP FOREIGN TABLE recent, recent_clq, of_any_clock;
DROP FUNCTION window_of, minute;
DROP TABLE beginning;

-- Times that are numbers, in a unit.
CREATE FOREIGN TABLE t_ms (id int, ts bigint OPTIONS (role 'time', unit 'ms'))
  SERVER streamfilter OPTIONS (window '1 hour', keys '10000');
CREATE TABLE events_ms (id int, ts bigint);
CREATE TRIGGER zz BEFORE INSERT ON events_ms FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('t_ms');
INSERT INTO events_ms VALUES (1, 1700000000);  -- seconds
INSERT INTO events_ms VALUES (1, 17);
INSERT INTO events_ms SELECT 1, 1700000000000 + d::bigint * 86400000 FROM generate_series(0, 30) d;
INSERT INTO events_ms VALUES (1, 1700000000000 + 30::bigint * 86400000 + 3599000);
SELECT count(*) FROM events_ms;
INSERT INTO events_ms VALUES (2, 17);          -- late: the filter is not empty
INSERT INTO events_ms VALUES (3, 4102444800001);
SELECT late, ahead FROM streamfilter_stats WHERE filter = 't_ms'::regclass;
ALTER FOREIGN TABLE t_ms ALTER COLUMN ts OPTIONS (SET unit 'ns');
INSERT INTO events_ms VALUES (1, 1700000000000000000), (1, 1700003599000000000);
SELECT count(*) FROM events_ms WHERE ts > 1e18;
-- fractions of seconds
CREATE FOREIGN TABLE t_s (id int, ts numeric OPTIONS (role 'time', unit 's'))
  SERVER streamfilter OPTIONS (kind 'timer', window '1 second', tick '1 ms', keys '100');
INSERT INTO t_s VALUES (1, 1e300);
SELECT streamfilter_seen('t_s', 1, 1700000000.5), streamfilter_seen('t_s', 1, 1700000001.49),
       streamfilter_seen('t_s', 1, 1700000001.51);
-- without a unit they are microseconds by any clock
CREATE FOREIGN TABLE t_any (id int, ts bigint OPTIONS (role 'time')) SERVER streamfilter OPTIONS (window '1 hour', keys '100');
SELECT streamfilter_seen('t_any', 1, 5), streamfilter_seen('t_any', 1, 1700000000000000);
SELECT streamfilter_seen('t_any', 2, 1700000000000), streamfilter_seen('t_any', 2, 1700000000);
CREATE FOREIGN TABLE t_none (id int, ts bigint OPTIONS (role 'time', unit 'none')) SERVER streamfilter OPTIONS (window '1 hour', keys '100');
SELECT streamfilter_seen('t_none', 1, 5), streamfilter_seen('t_none', 1, 1700000000000);
CREATE FOREIGN TABLE t_wrong (id int, ts bigint OPTIONS (role 'time', unit 'none'))
  SERVER streamfilter OPTIONS (window '1 hour', keys '100', max_future '1 minute');
CREATE FOREIGN TABLE t_wrong (id int, ts timestamptz OPTIONS (role 'time', unit 's')) SERVER streamfilter OPTIONS (window '1 hour', keys '100');
CREATE FOREIGN TABLE t_wrong (id int OPTIONS (unit 's')) SERVER streamfilter OPTIONS (keys '100');
CREATE FOREIGN TABLE t_wrong (id int, ts bigint OPTIONS (role 'time', unit 'h')) SERVER streamfilter OPTIONS (window '1 hour', keys '100');
CREATE FOREIGN TABLE t_wrong (id int, ts bigint OPTIONS (role 'time', units 's')) SERVER streamfilter OPTIONS (window '1 hour', keys '100');
DROP TABLE events_ms;
DROP FOREIGN TABLE t_ms, t_s, t_any, t_none;
