-- Trees of filters: options parent, tree, top_down.
CREATE FOREIGN TABLE root (user_id bigint, url text) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
CREATE FOREIGN TABLE leaf_a (user_id bigint, url text) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'root');
CREATE FOREIGN TABLE leaf_b (user_id bigint, url text) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'public.root', tree 'dense');

-- ---- one tree decides as one filter -------------------------------------------------------------
-- Sparse: what leaf_a takes is set there and in the root. Dense: leaf_b learns what it has missed.
SELECT streamfilter_seen('leaf_a', 1, '/') AS new, streamfilter_seen('leaf_a', 1, '/') AS at_leaf,
       streamfilter_seen('leaf_b', 1, '/') AS at_root, streamfilter_seen('leaf_b', 1, '/') AS now_at_leaf;
SELECT * FROM streamfilter_tree ORDER BY level, filter::text;
-- The filter that is asked counts answers; fill is everybody's own.
SELECT filter, tested, accepted, discarded, fill > 0 AS filled FROM streamfilter_stats
ORDER BY filter::text;
-- To test a key asks the whole path.
SELECT streamfilter_seen('leaf_b', 2, '/') AS new, streamfilter_test('leaf_a', 2, '/') AS a,
       streamfilter_test('leaf_b', 2, '/') AS b, streamfilter_test('root', 2, '/') AS root;
-- A key that comes in at the root is known below.
SELECT streamfilter_seen('root', 3, '/') AS new, streamfilter_seen('leaf_a', 3, '/') AS seen;
SELECT EXISTS (SELECT FROM leaf_b WHERE user_id = 3 AND url = '/') AS found;
INSERT INTO leaf_a SELECT i, '/batch' FROM generate_series(1, 200) i;
INSERT INTO leaf_b SELECT i, '/batch' FROM generate_series(101, 300) i;

-- ---- transactions -------------------------------------------------------------------------------
BEGIN;
SELECT streamfilter_seen('leaf_a', 4, '/') AS new, streamfilter_seen('leaf_b', 4, '/') AS own;
SAVEPOINT s;
SELECT streamfilter_seen('leaf_b', 5, '/') AS new;
ROLLBACK TO s;
SELECT streamfilter_seen('leaf_a', 5, '/') AS new_again;
SELECT filter, in_flight FROM streamfilter_stats ORDER BY filter::text;
ROLLBACK;
SELECT streamfilter_test('leaf_a', 4, '/') AS a, streamfilter_test('leaf_b', 4, '/') AS b,
       streamfilter_test('root', 4, '/') AS root, streamfilter_test('leaf_a', 5, '/') AS five;
BEGIN;
SELECT streamfilter_seen('leaf_a', 6, '/') AS new, streamfilter_seen('leaf_b', 7, '/') AS new;
PREPARE TRANSACTION 'tree';
SELECT streamfilter_test('leaf_a', 6, '/') AS not_yet;
COMMIT PREPARED 'tree';
SELECT streamfilter_test('leaf_b', 6, '/') AS b, streamfilter_test('leaf_a', 7, '/') AS a;
SELECT filter, in_flight FROM streamfilter_stats ORDER BY filter::text;

-- A trigger uses its leaf.
CREATE TABLE clicks (user_id bigint, url text);
CREATE TRIGGER zz BEFORE INSERT ON clicks FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('leaf_a');
INSERT INTO clicks SELECT i, '/batch' FROM generate_series(290, 310) i;

-- ---- values -------------------------------------------------------------------------------------
-- What is merged into a leaf goes up, too.
CREATE FOREIGN TABLE seeded (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4', seed '7');
CREATE FOREIGN TABLE seeded_leaf (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4', parent 'seeded');
SELECT streamfilter_merge('seeded_leaf', streamfilter_add('bloom(memory=8kB, k=4, seed=7)', 1));
SELECT streamfilter_test('seeded', 1) AS root, streamfilter_info(streamfilter_value('seeded_leaf')) -> 'seed' AS seed;

-- ---- EXPLAIN ------------------------------------------------------------------------------------
EXPLAIN (COSTS OFF) INSERT INTO leaf_b VALUES (1, '/');

-- ---- what makes no tree -------------------------------------------------------------------------
SELECT format('CREATE FOREIGN TABLE bad (user_id bigint, url text) SERVER streamfilter OPTIONS (%s)', options) FROM unnest(ARRAY[
  $$kind 'bloom', memory '64kB', k '5', parent 'root'$$, $$kind 'bloom', memory '32kB', k '4', parent 'root'$$,
  $$kind 'bloom', memory '64kB', k '4', parent 'root', seed '5'$$,
  $$kind 'timer', memory '64kB', k '4', window '10 minutes', parent 'root'$$, $$kind 'sbf', memory '64kB', parent 'root'$$,
  $$kind 'timer', memory '64kB', k '4', window '10 minutes', parent 'root', tree 'dense'$$,
  $$kind 'timer', memory '64kB', k '4', window '1000 rows', parent 'root'$$, $$kind 'timer', memory '64kB', k '4', window '1 row', parent 'root'$$,
  $$kind 'timer', memory '64kB', k '4', window '10 minutes', parent 'root', top_down '1'$$,
  $$kind 'bloom', memory '64kB', k '4', parent 'root', tree 'full'$$,
  $$kind 'bloom', memory '64kB', k '4', parent 'root', top_down '40'$$, $$kind 'bloom', memory '64kB', k '4', parent 'a.b.c'$$,
  $$kind 'bloom', memory '64kB', k '4', parent 'clicks'$$]) AS options \gexec
CREATE FOREIGN TABLE bad (user_id int, url text) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'root');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4', tree 'dense');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4', top_down '1');
ALTER FOREIGN TABLE root OPTIONS (ADD parent 'leaf_a');
ALTER FOREIGN TABLE root OPTIONS (ADD parent 'root');
-- The owner of a filter needs rights on its parent.
CREATE ROLE tree_user;
GRANT USAGE ON FOREIGN SERVER streamfilter TO tree_user;
GRANT CREATE ON SCHEMA public TO tree_user;
SET ROLE tree_user;
CREATE FOREIGN TABLE others (user_id bigint, url text) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'root');
SELECT streamfilter_seen('others', 1, '/');
-- Until then it is none of the tree: it neither keeps keys from the root nor the root from being dropped.
ALTER FOREIGN TABLE others OPTIONS (ADD top_down '1');
RESET ROLE;
SELECT streamfilter_seen('root', -1, '/no rights') AS seen;
SET ROLE tree_user;
SELECT count(*) FROM pg_depend WHERE objid = 'others'::regclass AND refobjid = 'root'::regclass;
ALTER FOREIGN TABLE others OPTIONS (DROP top_down);
RESET ROLE;
GRANT SELECT, INSERT ON root TO tree_user;
ALTER FOREIGN TABLE others OWNER TO CURRENT_USER;
REVOKE ALL ON root FROM tree_user;
-- A dump sets the owner before the rights.
ALTER FOREIGN TABLE others OWNER TO tree_user;
SELECT count(*) FROM pg_depend WHERE objid = 'others'::regclass AND refobjid = 'root'::regclass;
GRANT SELECT, INSERT ON root TO tree_user;
SET ROLE tree_user;
SELECT streamfilter_seen('others', 1, '/') AS seen;
RESET ROLE;
REVOKE INSERT ON root FROM tree_user;
SELECT streamfilter_seen('others', 8, '/');
DROP FOREIGN TABLE others;
REVOKE ALL ON root FROM tree_user;
REVOKE ALL ON SCHEMA public FROM tree_user;
REVOKE ALL ON FOREIGN SERVER streamfilter FROM tree_user;
DROP ROLE tree_user;

-- ---- a child may come before its parent, as in a dump -------------------------------------------
CREATE FOREIGN TABLE child (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4', parent 'later');
SELECT streamfilter_seen('child', 1);
SELECT streamfilter_save();
CREATE FOREIGN TABLE later (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4');
SELECT streamfilter_seen('child', 1) AS new, streamfilter_seen('later', 1) AS seen;
DROP FOREIGN TABLE later;
-- Another name or schema.
ALTER FOREIGN TABLE later RENAME TO sooner;
SELECT streamfilter_seen('child', 1);
ALTER FOREIGN TABLE child OPTIONS (SET parent 'sooner');
SELECT streamfilter_seen('child', 1) AS seen;
-- A tree of another size: the root first.
ALTER FOREIGN TABLE sooner OPTIONS (SET memory '16kB');
SELECT streamfilter_seen('child', 2);
ALTER FOREIGN TABLE child OPTIONS (SET memory '16kB');
SELECT streamfilter_seen('child', 2) AS new, streamfilter_seen('sooner', 2) AS seen;
-- The root's seed is random and belongs to all; a new one empties all.
SELECT streamfilter_info(streamfilter_value('child')) -> 'seed'
     = streamfilter_info(streamfilter_value('sooner')) -> 'seed' AS same_seed;
BEGIN;
ALTER FOREIGN TABLE sooner OPTIONS (ADD seed '1');
SELECT streamfilter_seen('child', 2) AS emptied, streamfilter_seen('sooner', 2) AS again;
ROLLBACK;
SELECT streamfilter_test('child', 2) AS back, streamfilter_test('sooner', 2) AS back;
SELECT streamfilter_info(streamfilter_value('child')) -> 'seed'
     = streamfilter_info(streamfilter_value('sooner')) -> 'seed' AS same_seed;
-- Out of the tree.
ALTER FOREIGN TABLE child OPTIONS (DROP parent);
DROP FOREIGN TABLE sooner;
SELECT * FROM streamfilter_tree WHERE filter = 'child'::regclass;
DROP FOREIGN TABLE child;

-- ---- TRUNCATE and DROP --------------------------------------------------------------------------
TRUNCATE seeded;
SELECT streamfilter_seen('seeded_leaf', 1) AS remembered;
TRUNCATE seeded, seeded_leaf;
SELECT streamfilter_seen('seeded_leaf', 1) AS forgotten;
DROP FOREIGN TABLE seeded CASCADE;
SELECT count(*) FROM streamfilter_stats WHERE filter::text LIKE 'seeded%';

-- ---- top-down: a match is looked for below, too -------------------------------------------------
-- 600 keys for some 3,500 bits: the root takes many new keys for repeats.
CREATE FOREIGN TABLE top (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1kB', k '2', seed '3');
CREATE FOREIGN TABLE left_leaf (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '1kB', k '2', parent 'top', top_down '1');
CREATE FOREIGN TABLE right_leaf (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '1kB', k '2', parent 'top', top_down '1');
INSERT INTO left_leaf SELECT i FROM generate_series(1, 300) i;
INSERT INTO right_leaf SELECT i FROM generate_series(301, 600) i;
-- No repeat is missed, wherever it comes in.
SELECT count(*) AS missed FROM generate_series(1, 600) i
WHERE NOT streamfilter_test('left_leaf', i) OR NOT streamfilter_test('right_leaf', i);
-- The root alone would call more new keys repeats.
SELECT count(*) FILTER (WHERE streamfilter_test('left_leaf', i)) <
       count(*) FILTER (WHERE streamfilter_test('top', i)) AS fewer
FROM generate_series(10001, 11000) i;
-- A refuted match is the key of the current transaction all the same.
BEGIN;
SELECT count(*) - count(*) FILTER (WHERE streamfilter_seen('left_leaf', i)) AS accepted,
       count(*) - count(*) FILTER (WHERE streamfilter_seen('right_leaf', i)) AS twice
FROM generate_series(10001, 11000) i WHERE streamfilter_test('top', i) AND NOT streamfilter_test('left_leaf', i);
ROLLBACK;
-- Keys must come in below.
SELECT streamfilter_seen('top', 1);
SELECT streamfilter_merge('top', streamfilter_value('top'));
-- A new leaf is known at once.
CREATE FOREIGN TABLE third_leaf (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '1kB', k '2', parent 'top', persistence 'unlogged', top_down '1');
CREATE FOREIGN TABLE third_leaf (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '1kB', k '2', parent 'top', top_down '1');
SELECT count(*) FILTER (WHERE streamfilter_seen('third_leaf', i)) < 600 AS some_new
FROM generate_series(20001, 20600) i;
SELECT count(*) AS missed FROM generate_series(20001, 20600) i WHERE NOT streamfilter_test('left_leaf', i);

-- ---- an overloaded root may be sliced otherwise -------------------------------------------------
CREATE FOREIGN TABLE sliced (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', slices '16', slicing 'vertical');
CREATE FOREIGN TABLE sliced_a (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'sliced', slices '1', top_down '1');
CREATE FOREIGN TABLE sliced_b (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'sliced', slices '4', tree 'dense', top_down '1');
INSERT INTO sliced_a SELECT i FROM generate_series(1, 1000) i;
SELECT count(*) FILTER (WHERE streamfilter_seen('sliced_b', i)) AS repeats FROM generate_series(1, 1000) i;
SELECT level, sum(hits) AS hits FROM streamfilter_tree WHERE filter::text LIKE 'sliced%'
GROUP BY level ORDER BY level;
DROP FOREIGN TABLE sliced, sliced_a, sliced_b;

-- ---- kind vqf ------------------------------------------------------------------------------------
CREATE FOREIGN TABLE known (id int) SERVER streamfilter OPTIONS (kind 'vqf', memory '64kB', fpr '1e-6');
CREATE FOREIGN TABLE known_a (id int) SERVER streamfilter OPTIONS (kind 'vqf', memory '64kB', fpr '1e-6', parent 'known');
CREATE FOREIGN TABLE known_b (id int) SERVER streamfilter OPTIONS (kind 'vqf', memory '64kB', fpr '1e-6', parent 'known', tree 'dense');
SELECT streamfilter_seen('known_a', 1) AS new, streamfilter_seen('known_a', 1) AS again, streamfilter_seen('known_b', 1) AS there,
       streamfilter_seen('known_b', 2) AS new, streamfilter_seen('known_a', 2) AS there, streamfilter_seen('known', 2) AS above;
CREATE FOREIGN TABLE lately (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (memory '64kB', fpr '1e-6', window '1 hour', lateness '10 minutes');
CREATE FOREIGN TABLE lately_a (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (memory '64kB', fpr '1e-6', window '1 hour', lateness '10 minutes', parent 'lately');
CREATE FOREIGN TABLE lately_b (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (memory '64kB', fpr '1e-6', window '1 hour', lateness '10 minutes', parent 'lately');
SET client_min_messages = error;
SELECT kind, streamfilter_seen('lately_a', 1, '2026-01-01 00:00Z') AS new, streamfilter_seen('lately_b', 1, '2026-01-01 00:30Z') AS there,
       streamfilter_seen('lately_b', 2, '2026-01-01 00:40Z') AS new, streamfilter_seen('lately_a', 2, '2026-01-01 00:35Z') AS before,
       streamfilter_seen('lately_a', 2, '2026-01-01 00:10Z') AS late, streamfilter_seen('lately_b', 1, '2026-01-01 01:10Z') AS left_the_window
FROM streamfilter_stats WHERE filter = 'lately'::regclass;
RESET client_min_messages;
\set VERBOSITY terse
ALTER FOREIGN TABLE lately_a OPTIONS (ADD tree 'dense');
ALTER FOREIGN TABLE known_a OPTIONS (ADD top_down '1');
\set VERBOSITY default
DROP FOREIGN TABLE known_a, known_b, known, lately_a, lately_b, lately;

-- ---- three levels, a window of time -------------------------------------------------------------
CREATE FOREIGN TABLE hour (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '32kB', k '4', window '1 hour');
CREATE FOREIGN TABLE hour_site (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '32kB', k '4', window '1 hour', parent 'hour');
CREATE FOREIGN TABLE hour_a (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '32kB', k '4', window '1 hour', parent 'hour_site');
CREATE FOREIGN TABLE hour_b (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '32kB', k '4', window '1 hour', parent 'hour_site');
SELECT streamfilter_seen('hour_a', 1, '2026-01-01 00:00Z') AS new,
       streamfilter_seen('hour_b', 1, '2026-01-01 00:30Z') AS repeat,
       streamfilter_seen('hour_b', 1, '2026-01-01 01:05Z') AS left_the_window,
       streamfilter_seen('hour_a', 1, '2026-01-01 01:10Z') AS repeat_again;
SELECT * FROM streamfilter_tree WHERE filter::text LIKE 'hour%' ORDER BY level, filter::text;
DROP FOREIGN TABLE hour, hour_site, hour_a, hour_b, top, left_leaf, right_leaf, third_leaf;
DROP TABLE clicks;
DROP FOREIGN TABLE root CASCADE;
SELECT * FROM streamfilter_tree;
