-- Defining filters: options, what is derived from them, and what bad ones get.
SET client_min_messages = notice;

-- ---- what is derived ------------------------------------------------------------------------------
-- Everything has a default.
CREATE FOREIGN TABLE plain (id int) SERVER streamfilter;
-- sbf: K and P by the paper's method for fpr.
CREATE FOREIGN TABLE stable (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '1MB', fpr '0.1');
-- sbf: Max by the typical gap of repeats.
CREATE FOREIGN TABLE near (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB', gap '100', fpr '0.01');
-- bloom: memory and k from keys and fpr.
CREATE FOREIGN TABLE classic (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '0.001');
-- auto: bloom or vqf where they keep fpr for so many keys, vqf where it forgets few of them, else clq.
CREATE FOREIGN TABLE roomy (id int) SERVER streamfilter OPTIONS (memory '1MB', keys '100000');
CREATE FOREIGN TABLE tight (id int) SERVER streamfilter OPTIONS (memory '1MB', keys '900000', fpr '0.01');
CREATE FOREIGN TABLE crowded (id int) SERVER streamfilter OPTIONS (memory '1MB', keys '100000000', fpr '0.01');
CREATE FOREIGN TABLE window_of_rows (id int) SERVER streamfilter OPTIONS (window '1000 rows', fpr '0.01');
-- Explicit parameters override fpr; fpr_bound tells what they imply.
CREATE FOREIGN TABLE as_printed (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '1MB', max '1', k '2', p '4');
CREATE FOREIGN TABLE unbounded (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', k '4');

SELECT filter, kind, memory, params - '{nulls,chosen}'::text[] AS params,
       round(fpr_bound::numeric, 5) AS fpr_bound, window_keys
FROM streamfilter_stats ORDER BY filter::text;
-- What auto chose, and why.
SELECT filter, params->>'chosen' AS chosen FROM streamfilter_stats
WHERE params ? 'chosen' ORDER BY filter::text;
EXPLAIN (COSTS OFF) SELECT * FROM plain WHERE id = 1;

-- Sizes are exact to the byte, whatever was asked for.
CREATE FOREIGN TABLE odd (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '100001', fpr '0.01');
INSERT INTO odd VALUES (1);
SELECT memory FROM streamfilter_stats WHERE filter = 'odd'::regclass;
DROP FOREIGN TABLE plain, stable, near, classic, roomy, tight, crowded, window_of_rows, as_printed, unbounded, odd;

-- ---- bad options ----------------------------------------------------------------------------------
-- The classes of errors: an unknown option, a bad value.
\set VERBOSITY sqlstate
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (knd 'sbf');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (fpr '2');
\set VERBOSITY default
SELECT format('CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (%s)', options) FROM unnest(ARRAY[
  $$knd 'sbf'$$, $$kind 'sbff'$$, $$kind 'bloom', max '3'$$, $$kind 'sbf', memory '64XB'$$, $$kind 'sbf', memory '-1'$$,
  $$kind 'sbf', memory '100'$$, $$kind 'sbf', memory '1000000TB'$$, $$fpr '0'$$, $$fpr '1'$$, $$fpr 'NaN'$$, $$fpr 'small'$$,
  $$keys '0'$$, $$keys '1.5'$$, $$nulls 'equal'$$, $$slices '0'$$, $$kind 'sbf', max '16'$$,
  $$kind 'sbf', max '7', cell_bits '2'$$, $$kind 'sbf', memory '192', fpr '0.0000001', max '15'$$]) AS options \gexec
-- A kind that cannot keep fpr says which can.
CREATE FOREIGN TABLE derived (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', fpr '0.01');
SELECT params, fpr_bound <= 0.01 AS keeps_fpr FROM streamfilter_stats;
DROP FOREIGN TABLE derived;
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '1000000', fpr '0.01');

-- Options of named filters that are not part of their bytes.
CREATE FOREIGN TABLE later (id int) SERVER streamfilter OPTIONS (kind 'sbf', conflict 'wait', persistence 'unlogged', fpr '0.01');
DROP FOREIGN TABLE later;
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (conflict 'ignore');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (persistence 'temporary');

-- ---- bad columns ----------------------------------------------------------------------------------
CREATE FOREIGN TABLE bad () SERVER streamfilter;
CREATE FOREIGN TABLE bad (at point) SERVER streamfilter;
CREATE FOREIGN TABLE bad (doc json[]) SERVER streamfilter;
CREATE FOREIGN TABLE bad (id int OPTIONS (rolle 'time')) SERVER streamfilter;
CREATE FOREIGN TABLE bad (id int OPTIONS (role 'weight')) SERVER streamfilter;
CREATE FOREIGN TABLE bad (id int OPTIONS (role 'time')) SERVER streamfilter;
CREATE FOREIGN TABLE bad (id int, t1 timestamptz OPTIONS (role 'time'),
                          t2 timestamptz OPTIONS (role 'time')) SERVER streamfilter;
CREATE FOREIGN TABLE bad (id int, w text OPTIONS (role 'importance')) SERVER streamfilter;
-- A role that the kind has no use for is fine, and said.
CREATE FOREIGN TABLE roles (id int, w real OPTIONS (role 'importance'),
                            t timestamptz OPTIONS (role 'time'))
  SERVER streamfilter OPTIONS (kind 'sbf', fpr '0.01');
SELECT streamfilter_seen('roles', 1, 2.5, now()), streamfilter_test('roles', 1),
       streamfilter_test('roles', 1, 0, NULL);
DROP FOREIGN TABLE roles;
-- A filter holds no rows that a partitioned table could show.
CREATE TABLE parent (id int) PARTITION BY LIST (id);
CREATE FOREIGN TABLE bad PARTITION OF parent DEFAULT SERVER streamfilter;
DROP TABLE parent;
-- Nothing is left behind.
SELECT count(*) FROM streamfilter_stats;

-- ---- servers --------------------------------------------------------------------------------------
CREATE SERVER small FOREIGN DATA WRAPPER streamfilter OPTIONS (memory_limit '1MB');
CREATE SERVER bad FOREIGN DATA WRAPPER streamfilter OPTIONS (memory_limt '1MB');
CREATE SERVER bad FOREIGN DATA WRAPPER streamfilter OPTIONS (memory_limit 'much');
CREATE USER MAPPING FOR CURRENT_USER SERVER small OPTIONS (colour 'red');
-- memory_limit caps what the filters of a server take together.
CREATE FOREIGN TABLE first (id int) SERVER small OPTIONS (kind 'sbf', memory '512kB');
CREATE FOREIGN TABLE second (id int) SERVER small OPTIONS (kind 'sbf', memory '513kB');
CREATE FOREIGN TABLE second (id int) SERVER small OPTIONS (kind 'sbf', memory '512kB');
ALTER FOREIGN TABLE second OPTIONS (SET memory '1MB');
-- It also holds when it is lowered later.
SELECT streamfilter_seen('first', 1);
ALTER SERVER small OPTIONS (SET memory_limit '600kB');
SELECT streamfilter_seen('second', 1);
DROP SERVER small CASCADE;

-- CREATE warns of memory that is not free; the first use fails and says how much there is.
CREATE FOREIGN TABLE large (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '100GB');
\set VERBOSITY terse
SELECT streamfilter_seen('large', 1);
\set VERBOSITY default
DROP FOREIGN TABLE large;

-- ---- layout ---------------------------------------------------------------------------------------
-- One 64-byte line per key, with the same promise; not for every kind.
CREATE FOREIGN TABLE lines (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB', layout 'blocked', fpr '0.01');
SELECT streamfilter_seen('lines', 1) AS s1, streamfilter_seen('lines', 1) AS s2;
SELECT params ->> 'layout' AS layout, fpr_bound <= 0.01 AS keeps_fpr FROM streamfilter_stats;
DROP FOREIGN TABLE lines;
CREATE FOREIGN TABLE lines (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', layout 'blocked', fpr '0.01');
SELECT streamfilter_seen('lines', 1) AS s1, streamfilter_seen('lines', 1) AS s2;
SELECT memory, params ->> 'layout' AS layout, params ->> 'k' AS k, fpr_bound <= 0.01 AS keeps_fpr
FROM streamfilter_stats;
-- As values: it is a part of the text, and only equal layouts can be merged.
SELECT split_part('bloom(keys=1000, layout=blocked)'::streamfilter::text, ':', 1) AS text;
SELECT count(*) FILTER (WHERE f @> i) AS remembered, count(*) FILTER (WHERE f @> -i) <= 30 AS few_others
FROM generate_series(1, 1000) AS i,
     (SELECT streamfilter_agg(key, 'bloom(keys=1000, layout=blocked)') FILTER (WHERE key % 2 = 0)
          || streamfilter_agg(key, 'bloom(keys=1000, layout=blocked)') FILTER (WHERE key % 2 = 1) AS f
      FROM generate_series(1, 1000) AS key) AS filled;
SELECT 'bloom(memory=4kB, k=4)'::streamfilter || 'bloom(memory=4kB, k=4, layout=blocked)';
DROP FOREIGN TABLE lines;
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'lru', layout 'blocked');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', grow 'density', layout 'blocked');
-- Memory follows from keys whatever else is given; sizes are whole numbers.
SELECT split_part('timer(window=1 hour, tick=1 minutes, keys=100000)'::streamfilter::text, ':', 1);
SELECT 'timer(window=1 hour, k=3, grow=density, size=8kB)'::streamfilter;
