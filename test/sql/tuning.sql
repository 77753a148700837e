--
-- What running filters would have missed with less and more memory. See docs/internals/compare.md.
--
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', slices '1', seed '1', fpr '0.01');
CREATE FOREIGN TABLE fifo (id int) SERVER streamfilter OPTIONS (kind 'clq', policy 'fifo', memory '64kB', seed '1', fpr '0.01');
CREATE FOREIGN TABLE important (id int, weight int OPTIONS (role 'importance')) SERVER streamfilter
  OPTIONS (kind 'clq', importance_range '1,7', memory '64kB', seed '1', fpr '0.01');
CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB', fpr '0.01');

-- ---- nothing is known of a filter that nobody has used -----------------------------------------
SELECT * FROM streamfilter_tuning;

-- ---- kinds without an order of last sight have no rows --------------------------------------------
INSERT INTO fifo SELECT i % 10 FROM generate_series(1, 100) AS i;
INSERT INTO important SELECT i % 10, 1 FROM generate_series(1, 100) AS i;
INSERT INTO other SELECT i % 10 FROM generate_series(1, 100) AS i;
SELECT filter FROM streamfilter_tuning;

-- ---- repeats of 20,000 keys, each as often, in a filter of 40,920 places -----------------------------
-- Half the memory still has nearly all, a quarter about half of them. (Rows of one statement are the
-- transaction's own until it ends: nothing is learnt from their repeats.)
SELECT setseed(0.5);
INSERT INTO seen SELECT i FROM generate_series(1, 20000) AS i;
SELECT count(*) AS found, sum(streamfilter_seen('seen', 1 + floor(random() * 20000)::int)::int) AS seen
FROM generate_series(1, 60000);
SELECT filter, factor, memory, round(found / 60000.0, 2) AS found, round(fnr::numeric, 2) AS fnr,
       round(fnr_low::numeric, 2) AS fnr_low, round(fnr_high::numeric, 2) AS fnr_high
FROM streamfilter_tuning ORDER BY factor;
-- What was found with the memory there is was really counted; false positives are taken out.
SELECT abs(t.found - s.discarded) < 0.01 * s.discarded AS counted
FROM streamfilter_tuning t JOIN streamfilter_stats s USING (filter) WHERE t.factor = 1;

-- ---- tests do not count; TRUNCATE forgets keys, not what was counted ------------------------------
SELECT found AS before FROM streamfilter_tuning WHERE factor = 1 \gset
SELECT count(*) FROM generate_series(1, 1000) AS i WHERE streamfilter_test('seen', i);
SELECT found = :before AS the_same FROM streamfilter_tuning WHERE factor = 1;
TRUNCATE seen;
SELECT round(found / :before::numeric, 2) AS share FROM streamfilter_tuning WHERE factor = 1;

-- ---- after a warm-up, and after TRUNCATE ----------------------------------------------------------
-- Rows that came when the filter was empty have met no false positive. Then two new keys for each
-- repeat, of keys 10,000 to 18,000 rows before: what half the memory is foretold to miss is what a filter
-- of half the memory does miss.
CREATE FOREIGN TABLE whole (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', slices '1', seed '1', fpr '0.01');
CREATE FOREIGN TABLE half (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '32kB', slices '1', seed '1', fpr '0.01');
INSERT INTO whole SELECT i FROM generate_series(1, 500000) AS i;
INSERT INTO half SELECT i FROM generate_series(1, 500000) AS i;
CREATE TEMP TABLE answers (filter regclass, repeats bigint, missed bigint);
\set ECHO none
SELECT format('INSERT INTO %1$s SELECT i FROM generate_series(%2$s + 1, %2$s + 2000) AS i', filter, last),
       format('INSERT INTO answers SELECT %1$L, count(*), count(*) - count(*) FILTER (WHERE streamfilter_seen(%1$L, i))
         FROM generate_series(%2$s - 16000, %2$s - 8001, 8) AS i', filter, last + batch % 8)
FROM generate_series(0, 19) AS batch, LATERAL (VALUES (500000 + 2000 * batch)) AS l(last),
     (VALUES ('whole'), ('half')) AS f(filter)
ORDER BY batch \gexec
\set ECHO all
SELECT filter, sum(repeats) AS repeats, round(sum(missed) / sum(repeats), 3) AS fnr FROM answers GROUP BY filter ORDER BY 1;
SELECT sum(missed) / sum(repeats) AS truth FROM answers WHERE filter = 'half'::regclass \gset
SELECT round(fnr::numeric, 3) AS fnr, :truth BETWEEN fnr_low AND fnr_high AS within, fnr - fnr_low < .05 AS close
FROM streamfilter_tuning WHERE filter = 'whole'::regclass AND factor = 0.5;
-- As of then, with a filter that is empty now.
CREATE TEMP TABLE before AS SELECT filter, factor, found, fnr, fnr_low, fnr_high FROM streamfilter_tuning;
TRUNCATE whole;
SELECT count(*) FROM (TABLE before EXCEPT SELECT filter, factor, found, fnr, fnr_low, fnr_high FROM streamfilter_tuning) AS changed;
-- A transaction that has truncated the filter meets none of its keys.
BEGIN;
TRUNCATE half;
INSERT INTO half SELECT i FROM generate_series(1, 500000) AS i;
COMMIT;
SELECT filter, fnr = (SELECT fnr FROM before b WHERE b.filter = t.filter AND b.factor = 0.5) AS the_same
FROM streamfilter_tuning t WHERE filter = 'half'::regclass AND factor = 0.5;

-- ---- anybody may look ---------------------------------------------------------------------------
CREATE ROLE tuning_reader;
SET ROLE tuning_reader;
SELECT count(*) FROM streamfilter_tuning;
RESET ROLE;
DROP ROLE tuning_reader;
SELECT * FROM _streamfilter.streamfilter_tune(0);
SELECT * FROM _streamfilter.streamfilter_tune('pg_class'::regclass);
DROP FOREIGN TABLE seen, fifo, important, other, whole, half;
