--
-- Every kind of filter: as a relation, as a value, its promise, its limits. See docs/kinds.md.
--

-- ---- a filter of every kind ---------------------------------------------------------------------
-- A fixed seed makes answers repeatable; leave it out in real use.

-- No false negatives, for a known number of keys.
CREATE FOREIGN TABLE k_bloom (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '16kB', keys '10000', seed '1', fpr '0.01');
-- The same in up to eight filters, opened one after the other.
CREATE FOREIGN TABLE k_bloom_grow (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '32kB', keys '10000', grow 'density', seed '1', fpr '0.01');
-- Streams without end.
CREATE FOREIGN TABLE k_sbf (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '16kB', fpr '0.01', seed '1');
CREATE FOREIGN TABLE k_rsbf (id int) SERVER streamfilter OPTIONS (kind 'rsbf', memory '16kB', fpr '0.1', seed '1');
CREATE FOREIGN TABLE k_rsbf_measured (id int) SERVER streamfilter
  OPTIONS (kind 'rsbf', memory '16kB', fpr '0.1', variant 'measured', seed '1');
-- Biased sampling: a promise for a number of keys.
CREATE FOREIGN TABLE k_bsbf (id int) SERVER streamfilter OPTIONS (kind 'bsbf', memory '32kB', keys '10000', seed '1', fpr '0.01');
CREATE FOREIGN TABLE k_bsbfsd (id int) SERVER streamfilter OPTIONS (kind 'bsbfsd', memory '32kB', keys '10000', seed '1', fpr '0.01');
CREATE FOREIGN TABLE k_rlbsbf (id int) SERVER streamfilter OPTIONS (kind 'rlbsbf', memory '32kB', keys '10000', seed '1', fpr '0.01');
-- Signatures in rows of buckets.
CREATE FOREIGN TABLE k_sqf (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '16kB', fpr '0.01', seed '1');
CREATE FOREIGN TABLE k_dsqf (id int) SERVER streamfilter OPTIONS (kind 'dsqf', memory '16kB', fpr '0.01', seed '1');
-- The more important, the longer remembered.
CREATE FOREIGN TABLE k_ibf2c (id int, weight real OPTIONS (role 'importance')) SERVER streamfilter
  OPTIONS (kind 'ibf2c', memory '16kB', importance_levels '100', seed '1', fpr '0.01');
CREATE FOREIGN TABLE k_ibfmc (id int, weight real OPTIONS (role 'importance')) SERVER streamfilter
  OPTIONS (kind 'ibfmc', memory '16kB', importance_range '0,1000', seed '1', fpr '0.01');
CREATE FOREIGN TABLE k_ibfh (id int, weight real OPTIONS (role 'importance')) SERVER streamfilter
  OPTIONS (kind 'ibfh', memory '16kB', fpr '0.1', importance_range '0,1000', seed '1');
-- A sliding window of time, or of rows.
CREATE FOREIGN TABLE k_timer (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', keys '1000', window '10 minutes', seed '1', fpr '0.01');
CREATE FOREIGN TABLE k_timer_rows (id int) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', slices '1', window '1000 rows', tick '1 row', seed '1', fpr '0.01');
-- The most recent keys, exactly.
CREATE FOREIGN TABLE k_lru (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '16kB', seed '1');
CREATE FOREIGN TABLE k_lru_clock (id int) SERVER streamfilter
  OPTIONS (kind 'lru', memory '16kB', policy 'clock', entry_bits '32', seed '1');
CREATE FOREIGN TABLE k_fplru (id int) SERVER streamfilter OPTIONS (kind 'fplru', memory '16kB', q '0.05', seed '1');
-- Short fingerprints of the keys seen last, in buckets of one cache line.
CREATE FOREIGN TABLE k_clq (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '16kB', fpr '0.01', seed '1');
CREATE FOREIGN TABLE k_clq_fifo (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '16kB', fpr '0.01', policy 'fifo', seed '1');
-- A Bloom filter that clears bits where it gets too full: for a number of keys, or for ever.
CREATE FOREIGN TABLE k_vqf (id int) SERVER streamfilter OPTIONS (kind 'vqf', memory '16kB', keys '10000', seed '1', fpr '0.01');

-- What was derived. The rate is promised up to `keys` where that is given, for ever where it is not.
SELECT filter, kind, memory, params->>'keys' AS keys, round(fpr_bound::numeric, 4) AS fpr_bound,
       params - '{kind,memory,keys,fpr,seed,slices,nulls,layout}'::text[] AS own_options
FROM streamfilter_stats WHERE filter::text LIKE 'k\_%' ORDER BY filter::text;

-- ---- first sight, repeat ------------------------------------------------------------------------
SELECT format('SELECT streamfilter_seen(%1$L, 1%2$s) AS first, streamfilter_seen(%1$L, 1%2$s) AS repeat,
       streamfilter_seen(%1$L, 2%3$s) AS other', f, CASE WHEN f LIKE 'k\_ibf%' THEN ', 50' END, CASE WHEN f LIKE 'k\_ibf%' THEN ', 500' END)
FROM unnest('{k_bloom,k_bloom_grow,k_sbf,k_rsbf,k_rsbf_measured,k_bsbf,k_bsbfsd,k_rlbsbf,k_sqf,k_dsqf,k_ibf2c,k_ibfmc,k_ibfh,
  k_timer_rows,k_lru,k_lru_clock,k_fplru,k_clq,k_clq_fifo,k_vqf}'::text[]) AS f \gexec
SELECT streamfilter_seen('k_timer', 1, '2026-01-01 12:00+00') AS first,
       streamfilter_seen('k_timer', 1, '2026-01-01 12:01+00') AS repeat,
       streamfilter_seen('k_timer', 2, '2026-01-01 12:02+00') AS other;

-- What each counted. A timer does not know how many distinct keys there were: NULL.
SELECT filter, kind, accepted, discarded, round(distinct_estimate::numeric) AS distinct_estimate
FROM streamfilter_stats WHERE filter::text LIKE 'k\_%' ORDER BY filter::text;

-- ---- importance ---------------------------------------------------------------------------------
-- 100 important keys, 100 unimportant ones, then 300 others: which ones are remembered?
CREATE FOREIGN TABLE ranked (id int, weight real OPTIONS (role 'importance')) SERVER streamfilter
  OPTIONS (kind 'ibfmc', memory '16kB', max '15', importance_range '0,1000', seed '1', fpr '0.01');
INSERT INTO ranked SELECT i, 1000 FROM generate_series(1, 100) AS i;
INSERT INTO ranked SELECT -i, 1 FROM generate_series(1, 100) AS i;
INSERT INTO ranked SELECT i, 1 FROM generate_series(1001, 1300) AS i;
SELECT count(*) FILTER (WHERE streamfilter_test('ranked', i)) > 90 AS important_remembered,
       count(*) FILTER (WHERE streamfilter_test('ranked', -i)) < 10 AS unimportant_forgotten
FROM generate_series(1, 100) AS i;
-- Beyond the ends of the range counts as the nearest end; NULL as 0.
SELECT streamfilter_seen('ranked', 5001, '-infinity') AS least,
       streamfilter_seen('ranked', 5002, 'infinity') AS most,
       streamfilter_seen('ranked', 5003, NULL) AS missing;

-- ---- time ---------------------------------------------------------------------------------------
-- A window of 10 minutes with ticks of 1 minute: forgotten after 10 minutes, at most a tick later.
CREATE FOREIGN TABLE recent (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', keys '1000', window '10 minutes', tick '1 minute', seed '1');
SELECT streamfilter_seen('recent', 1, '2026-01-01 12:00+00') AS first,
       streamfilter_seen('recent', 1, '2026-01-01 12:09:59+00') AS within,
       streamfilter_seen('recent', 1, '2026-01-01 12:12+00') AS later;
-- A repeat does not prolong the window: it is counted from the row that was accepted.
SELECT streamfilter_seen('recent', 2, '2026-01-01 12:20+00') AS first,
       streamfilter_seen('recent', 2, '2026-01-01 12:29+00') AS repeat,
       streamfilter_seen('recent', 2, '2026-01-01 12:32+00') AS accepted_again;
-- A late event is remembered for what is left of its own window, and shortens nobody else's.
SELECT streamfilter_seen('recent', 3, '2026-01-01 12:27+00') AS late,
       streamfilter_seen('recent', 3, '2026-01-01 12:32+00') AS repeat,
       streamfilter_seen('recent', 3, '2026-01-01 12:39+00') AS its_window_is_over,
       streamfilter_test('recent', 2, '2026-01-01 12:40+00') AS other_window_is_not;
-- Later than the window: not remembered at all.
SELECT streamfilter_seen('recent', 4, '2026-01-01 12:00+00') AS too_late;
SELECT streamfilter_seen('recent', 4, '2026-01-01 12:00+00') AS too_late_again;
-- An event far in the future moves no clock, unless it is allowed to: what was live is forgotten then.
SELECT streamfilter_seen('recent', 5, '2026-01-01 12:39+00') AS first,
       streamfilter_seen('recent', 6, '2999-01-01 00:00+00') AS future,
       streamfilter_seen('recent', 5, '2026-01-01 12:39+00') AS remembered;
ALTER FOREIGN TABLE recent OPTIONS (ADD max_future 'infinity');
SELECT streamfilter_seen('recent', 7, '2999-01-01 00:00+00') AS future;
SELECT streamfilter_seen('recent', 5, '2026-01-01 12:39+00') AS forgotten;

-- A window of 3 rows, exact with one slice: rows that were accepted count.
CREATE FOREIGN TABLE last_rows (id int) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', slices '1', window '3 rows', k '8', seed '1');
SELECT id, streamfilter_seen('last_rows', id) AS repeat
FROM (VALUES (1), (2), (3), (1), (4), (1)) AS stream (id);

-- ---- recent keys --------------------------------------------------------------------------------
-- lru keeps what was seen last: a repeat makes a key young again.
CREATE FOREIGN TABLE buffer (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '1kB', seed '1');
INSERT INTO buffer SELECT CASE i % 2 WHEN 0 THEN 1 ELSE i END FROM generate_series(1, 1000) AS i;
SELECT streamfilter_test('buffer', 1) AS seen_often, streamfilter_test('buffer', 999) AS seen_last,
       streamfilter_test('buffer', 3) AS seen_long_ago;
-- fplru calls new keys repeats with probability q.
CREATE FOREIGN TABLE guessing (id int) SERVER streamfilter OPTIONS (kind 'fplru', memory '16kB', q '0.5', seed '1');
SELECT count(*) BETWEEN 450 AND 550 AS about_half
FROM generate_series(1, 1000) AS i WHERE streamfilter_seen('guessing', i);

-- clq: what is seen again and again stays (lru), or goes with its age all the same (fifo).
CREATE FOREIGN TABLE queue (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '192', bits '48', bucket '10', seed '1');
CREATE FOREIGN TABLE queue_fifo (id int) SERVER streamfilter
  OPTIONS (kind 'clq', memory '192', bits '48', bucket '10', policy 'fifo', seed '1');
-- Ten keys fit; the first one comes again before five others.
INSERT INTO queue SELECT CASE i WHEN 11 THEN 1 ELSE i END FROM generate_series(1, 16) AS i;
INSERT INTO queue_fifo SELECT CASE i WHEN 11 THEN 1 ELSE i END FROM generate_series(1, 16) AS i;
SELECT array_agg(i) FILTER (WHERE streamfilter_test('queue', i)) AS lru,
       array_agg(i) FILTER (WHERE streamfilter_test('queue_fifo', i)) AS fifo
FROM generate_series(1, 16) AS i;
-- One key is forgotten, and only that one.
DELETE FROM queue WHERE id = 14;
SELECT array_agg(i) FILTER (WHERE streamfilter_test('queue', i)) AS lru
FROM generate_series(1, 16) AS i;
DELETE FROM k_rsbf WHERE id = 1;

-- ---- vqf ----------------------------------------------------------------------------------------
INSERT INTO k_vqf SELECT i FROM generate_series(3, 10000) AS i;
SELECT count(*) FILTER (WHERE streamfilter_test('k_vqf', i)) > 9990 AS remembered,
       count(*) FILTER (WHERE streamfilter_test('k_vqf', -i)) < 150 AS few_false_positives
FROM generate_series(3, 10000) AS i;

-- ---- growing ------------------------------------------------------------------------------------
-- Up to the promised number of keys: no false negatives, and few false positives.
INSERT INTO k_bloom_grow SELECT i FROM generate_series(3, 10000) AS i;
SELECT count(*) FILTER (WHERE streamfilter_test('k_bloom_grow', i)) AS remembered,
       count(*) FILTER (WHERE streamfilter_test('k_bloom_grow', -i)) < 100 AS few_false_positives
FROM generate_series(1, 10000) AS i;

-- ---- what ends badly ----------------------------------------------------------------------------
-- On a stream of new keys bsbfsd ends by calling all of them repeats; bsbf and rlbsbf reach a limit.
INSERT INTO k_bsbfsd SELECT i FROM generate_series(1, 2000000) AS i;
INSERT INTO k_bsbf SELECT i FROM generate_series(1, 2000000) AS i;
INSERT INTO k_rlbsbf SELECT i FROM generate_series(1, 2000000) AS i;
SELECT filter, round(fpr_now::numeric, 1) AS fpr_now
FROM streamfilter_stats WHERE filter::text IN ('k_bsbf', 'k_bsbfsd', 'k_rlbsbf')
ORDER BY filter::text;

-- ---- forgetting ---------------------------------------------------------------------------------
-- No filter keeps anything after TRUNCATE.
SELECT format('TRUNCATE %s', string_agg(filter::text, ', ' ORDER BY filter::text)) FROM streamfilter_stats WHERE filter::text LIKE 'k\_%' \gexec
SELECT count(*) AS filters, max(fill) AS fill
FROM streamfilter_stats WHERE filter::text LIKE 'k\_%';

-- ---- values -------------------------------------------------------------------------------------
CREATE TABLE kinds (nr int, f streamfilter);
INSERT INTO kinds VALUES
  (1, 'bloom(memory=16kB, keys=10000)'), (2, 'bloom(memory=32kB, keys=10000, grow=cardinality)'), (3, 'sbf(memory=16kB)'),
  (4, 'rsbf(memory=16kB, fpr=0.1)'), (5, 'rsbf(memory=16kB, fpr=0.1, variant=measured)'),
  (6, 'bsbf(memory=32kB, keys=10000)'), (7, 'bsbfsd(memory=32kB, keys=10000)'), (8, 'rlbsbf(memory=32kB, keys=10000)'),
  (9, 'sqf(memory=16kB)'), (10, 'dsqf(memory=16kB)'), (11, 'ibf2c(memory=16kB)'), (12, 'ibfmc(memory=16kB)'),
  (13, 'ibfh(memory=16kB, fpr=0.1)'), (14, 'timer(memory=64kB, slices=1, window="1000 rows", tick="1 row")'),
  (15, 'lru(memory=16kB)'), (16, 'lru(memory=16kB, policy=clock, entry_bits=32)'), (17, 'fplru(memory=16kB, fpr=0.05)'),
  (18, 'clq(memory=16kB)'), (19, 'clq(memory=16kB, bits=16, bucket=8, policy=fifo)'), (20, 'vqf(memory=16kB, keys=10000)'),
  (21, 'vqf(memory=16kB, fpr=0.1)'), (22, 'ell(memory=16kB)'), (23, 'clq(memory=16kB, lines=2)');

-- A key that was added is contained; text form and value agree. (fplru guesses: key 1 happens to be
-- among the 5 % that it calls repeats at the start.)
SELECT nr, streamfilter_info(f)->>'kind' AS kind, f @> 1 AS before, g @> 1 AS after, g @> 2 AS other,
       g::text::streamfilter::text = g::text AS reads_back
FROM kinds, LATERAL (SELECT streamfilter_add(f, 1) AS g) AS added ORDER BY nr;

-- As an aggregate, over 100 keys that come ten times each. Values know no importance: all keys are of
-- the least there is, which ibfmc and ibfh forget first. They are for filters with that column.
SELECT nr, streamfilter_info(g)->>'kind' AS kind,
       (SELECT count(*) FROM generate_series(1, 100) AS i WHERE g @> i) AS remembered,
       (SELECT count(*) FROM generate_series(1001, 2000) AS i WHERE g @> i) < 100 AS few_others
FROM kinds, LATERAL (SELECT streamfilter_agg(1 + i % 100, f) AS g
                     FROM generate_series(1, 1000) AS i) AS filled
ORDER BY nr;

-- First occurrences of a query's rows, 100 of 1000. What a kind has forgotten comes through again.
CREATE TABLE events (id int);
INSERT INTO events SELECT 1 + i % 100 FROM generate_series(1, 1000) AS i;
SELECT nr, streamfilter_info(f)->>'kind' AS kind,
       (SELECT count(*) FROM streamfilter_distinct(NULL::events, 'SELECT id FROM events', f)) AS rows
FROM kinds ORDER BY nr;

-- Merged, a filter remembers what either did. (fplru would call some of the others repeats.)
SELECT nr, streamfilter_info(f)->>'kind' AS kind, g @> 1 AS left, g @> 2 AS right, g @> 3 AS neither
FROM kinds, LATERAL (SELECT streamfilter_add(f, 1) || streamfilter_add(f, 2) AS g) AS merged
WHERE nr <> 17 ORDER BY nr;
SELECT streamfilter_union_agg(streamfilter_add(f, i)) @> 2 AS knows FROM kinds, generate_series(1, 2) i WHERE nr = 15;
-- Filters that have grown leave no room for each other; the results of an aggregate do.
SELECT streamfilter_info(a || b) IS NOT NULL AS merged
FROM (SELECT streamfilter_agg(i, f) AS a, streamfilter_agg(-i, f) AS b FROM kinds, generate_series(1, 5000) i WHERE nr = 2) AS v;
CREATE FOREIGN TABLE k_grown (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '32kB', keys '10000', grow 'density', seed '1', fpr '0.01');
INSERT INTO k_grown SELECT generate_series(1, 5000);
INSERT INTO k_bloom_grow SELECT generate_series(5001, 9000);
SELECT streamfilter_value('k_grown') || streamfilter_value('k_bloom_grow');
SELECT streamfilter_merge('k_grown', streamfilter_value('k_bloom_grow'));
DROP FOREIGN TABLE k_grown;
-- Only filters of one kind with the same parameters merge.
SELECT a.f || b.f FROM kinds a, kinds b WHERE a.nr = 3 AND b.nr = 12;
SELECT a.f || b.f FROM kinds a, kinds b WHERE a.nr = 4 AND b.nr = 5;

-- A named filter takes in a value of its kind, parameters and seed.
SELECT streamfilter_merge('k_sqf', streamfilter_add(streamfilter_value('k_sqf'), 7));
SELECT streamfilter_test('k_sqf', 7);
SELECT streamfilter_merge('k_lru', streamfilter_add(streamfilter_value('k_lru'), 7));
SELECT streamfilter_test('k_lru', 7);

-- approx_count_distinct takes any kind that counts keys, but those that forget count a key again
-- when it comes back. A timer does not count.
SELECT nr, streamfilter_info(f)->>'kind' AS kind,
       abs((SELECT approx_count_distinct(id, f) FROM events) - 100) <= 10 AS near_100
FROM kinds WHERE nr <> 14 ORDER BY nr;
SELECT approx_count_distinct(id, 'timer(memory=64kB, window="1000 rows")') FROM events;

-- ---- bad options --------------------------------------------------------------------------------
-- Errors show the range.
SELECT format('SELECT %L::streamfilter', f) FROM (VALUES
  ('bloom(memory=64kB, k=65)'), ('bloom(memory=64kB, k=3, grow=slowly)'), ('sbf(memory=64kB, k=33)'),
  ('sbf(memory=64kB, cell_bits=5)'), ('rsbf(memory=64kB, k=33)'), ('rsbf(memory=64kB, p_star=2)'),
  ('rsbf(memory=64kB, variant=other)'), ('bsbf(memory=64kB, k=0)'), ('bsbfsd(memory=64kB, k=33)'),
  ('rlbsbf(memory=64kB, k=1.5)'), ('sqf(memory=64kB, r=25)'), ('sqf(memory=64kB, r_prime=24)'),
  ('sqf(memory=64kB, r=4, r_prime=4)'), ('sqf(memory=64kB, buckets=65)'), ('sqf(memory=64kB, p=65)'),
  ('sqf(memory=64kB, omega=0)'), ('dsqf(memory=64kB, rows=0)'), ('dsqf(memory=64kB, buckets=0)'),
  ('ibf2c(memory=64kB, max=1)'), ('ibf2c(memory=64kB, importance_levels="1,2")'), ('ibfmc(memory=64kB, max=16)'),
  ('ibfmc(memory=64kB, importance_range="10,1")'), ('ibfmc(memory=64kB, max=3, importance_levels="1,2,3")'),
  ('ibfmc(memory=64kB, importance_range="0,1", importance_levels="1,2")'), ('ibfh(memory=64kB, delete=oldest)'),
  ('timer(memory=64kB)'), ('timer(memory=64kB, window="10 fortnights")'), ('timer(memory=64kB, window="10 minutes")'),
  ('timer(memory=64kB, keys=1000, window="10 minutes", tick="5 rows")'),
  ('timer(memory=64kB, k=3, window="10 minutes", equal_timers=1)'),
  ('timer(memory=64kB, k=3, window="10 minutes", equal_timers=4)'),
  ('timer(memory=64kB, k=3, window="10 minutes", size=8192)'), ('lru(memory=64kB, entry_bits=15)'),
  ('lru(memory=64kB, policy=fifo)'), ('fplru(memory=64kB, q=1.5)'), ('clq(memory=64kB, bits=1)'),
  ('clq(memory=64kB, bits=12, bucket=43)'), ('clq(memory=64kB, bits=6)'), ('clq(memory=64kB, policy=clock)'),
  ('clq(memory=64kB, lines=3)'), ('clq(memory=64kB, lines=2, policy=fifo)'), ('vqf(memory=64kB, bits=33)'),
  ('vqf(memory=64kB, buckets=128)'), ('vqf(memory=64kB, growth=0.5)')) AS bad (f) \gexec

-- Options of another kind.
SELECT format('SELECT %L::streamfilter', f) FROM (VALUES
  ('bloom(memory=64kB, keys=1000, max=3)'), ('sbf(memory=64kB, buckets=4)'), ('bsbf(memory=64kB, k=2, p_star=0.03)'),
  ('sqf(memory=64kB, rows=4)'), ('ibfmc(memory=64kB, gap=100)'),
  ('timer(memory=64kB, k=3, window="10 minutes", delete=value)'), ('lru(memory=64kB, q=0.1)'), ('clq(memory=64kB, k=3)'),
  ('vqf(memory=64kB, k=8)')) AS bad (f) \gexec

-- Promises that a kind cannot make.
SELECT format('SELECT streamfilter_add(%L, 1)', f) FROM (VALUES
  ('bsbf(memory=16kB, keys=10000)'), ('bsbf(memory=64kB)'), ('bsbfsd(memory=64kB)'), ('rlbsbf(memory=64kB, fpr=0.1)'),
  ('rsbf(memory=64kB, fpr=0.0000001)'), ('sqf(memory=64kB, fpr=0.00000001)'), ('timer(memory=1kB, window="1000000 rows")')) AS bad (f) \gexec
SELECT format('SELECT %L::streamfilter', f) FROM (VALUES
  ('fplru(memory=64kB, entry_bits=16, fpr=0.000001)'), ('clq(memory=64kB, fpr=1e-15)'), ('ell(memory=64kB, fpr=0.01)'),
  ('vqf(memory=16kB, fpr=1e-60)')) AS bad (f) \gexec
SELECT 'ell(memory=252)'::streamfilter, 'ell(memory=152)'::streamfilter;

DROP TABLE kinds, events;
SELECT format('DROP FOREIGN TABLE %s', string_agg(filter::text, ', ' ORDER BY filter::text)) FROM streamfilter_stats WHERE filter::text LIKE 'k\_%' \gexec
DROP FOREIGN TABLE ranked, recent, last_rows, buffer, guessing, queue, queue_fifo;
