--
-- Kind clq with an importance: what matters enters its bucket further in front. See docs/kinds.md.
--
CREATE FOREIGN TABLE alerts (id int, severity int OPTIONS (role 'importance')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '8kB', importance_levels '3,5,7', seed '1');
-- Buckets that are full of keys that do not matter, 100 that do, 100 that do not, and others.
INSERT INTO alerts SELECT i, 1 FROM generate_series(10001, 20000) AS i;
INSERT INTO alerts SELECT i, 9 FROM generate_series(1, 100) AS i;
INSERT INTO alerts SELECT -i, 1 FROM generate_series(1, 100) AS i;
INSERT INTO alerts SELECT i, 1 FROM generate_series(1001, 6000) AS i;
SELECT count(*) FILTER (WHERE streamfilter_test('alerts', i)) > 90 AS important_remembered,
       count(*) FILTER (WHERE streamfilter_test('alerts', -i)) < 10 AS unimportant_forgotten
FROM generate_series(1, 100) AS i;
SELECT streamfilter_seen('alerts', 7001, 7) AS first, streamfilter_seen('alerts', 7001, NULL) AS repeat;

-- Together with a window.
CREATE FOREIGN TABLE recent_alerts (id int, severity int OPTIONS (role 'importance'),
  at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '8kB', importance_range '0,10', window '15 minutes', seed '1');
SELECT streamfilter_seen('recent_alerts', 1, 2, '2026-01-01 12:00+00') AS first,
       streamfilter_seen('recent_alerts', 1, 9, '2026-01-01 12:14+00') AS repeat,
       streamfilter_seen('recent_alerts', 1, 9, '2026-01-01 12:16+00') AS after;

-- Only these options make use of such a column, and they need one.
CREATE FOREIGN TABLE without (id int, severity int OPTIONS (role 'importance')) SERVER streamfilter
  OPTIONS (kind 'clq', memory '8kB');
CREATE FOREIGN TABLE no_column (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '8kB', importance_range '0,10');

SELECT split_part('clq(importance_levels="3,5", memory=4kB, seed=1)'::streamfilter::text, ':', 1) AS text;
SELECT 'clq(importance_range="1,9", importance_levels="3,5")'::streamfilter;
SELECT 'clq(importance_range="9,1")'::streamfilter;
SELECT 'clq(importance_levels="5,3")'::streamfilter;

DROP FOREIGN TABLE alerts, recent_alerts, without, no_column;

-- ---- policy second says, too, where a key enters --------------------------------------------------
CREATE FOREIGN TABLE twice (id int) SERVER streamfilter
  OPTIONS (kind 'clq', memory '64kB', policy 'second', importance_levels '4');
CREATE FOREIGN TABLE behind (id int) SERVER streamfilter
  OPTIONS (kind 'clq', memory '192', bits '48', bucket '10', policy 'second', seed '1');
-- The key that came again stays at the front, whatever comes after it.
INSERT INTO behind VALUES (1);
INSERT INTO behind VALUES (1);
INSERT INTO behind SELECT i FROM generate_series(2, 100) AS i;
SELECT i, streamfilter_test('behind', i) FROM unnest(ARRAY[1, 2, 91, 92, 100]) AS i;
DROP FOREIGN TABLE behind;
