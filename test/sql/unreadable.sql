-- Filters that cannot be read, made by a role without rights: views show them, and nobody else is troubled.
CREATE SCHEMA unreadable;
SET search_path = unreadable, public;
CREATE ROLE regress_breaker;
GRANT USAGE ON FOREIGN SERVER streamfilter TO regress_breaker;
GRANT USAGE, CREATE ON SCHEMA unreadable TO regress_breaker;
CREATE SERVER far FOREIGN DATA WRAPPER streamfilter OPTIONS (host 'far.invalid');
CREATE SERVER away FOREIGN DATA WRAPPER streamfilter OPTIONS (host 'away.invalid');
GRANT USAGE ON FOREIGN SERVER far, away TO regress_breaker;
-- What the views say of filters here, without figures.
CREATE VIEW said AS
  SELECT * FROM (SELECT filter, 'stats' AS of, kind AS what, error FROM streamfilter_stats
  UNION ALL SELECT filter, 'tuning', factor::text, error FROM streamfilter_tuning WHERE factor IS NULL OR factor = 1
  UNION ALL SELECT filter, 'tree', level::text, error FROM streamfilter_tree
  UNION ALL SELECT filter, 'slices', slice::text, error FROM streamfilter_slices WHERE slice IS NULL OR slice = 0) AS v
  WHERE filter::oid IN (SELECT oid FROM pg_class WHERE relnamespace = 'unreadable'::regnamespace);
GRANT SELECT ON said TO regress_breaker;

CREATE FOREIGN TABLE sound (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
SELECT streamfilter_seen('sound', 1);

SET ROLE regress_breaker;
-- A key column that goes with its type.
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE FOREIGN TABLE a_mood (m mood) SERVER streamfilter OPTIONS (memory '64kB');
SELECT streamfilter_seen('a_mood', 'glad');
DROP TYPE mood CASCADE;
-- A key type that can no more be hashed: something without a hash function has got into it.
CREATE TYPE pair AS (a int, b int);
CREATE FOREIGN TABLE b_pair (p pair) SERVER streamfilter OPTIONS (memory '64kB');
SELECT streamfilter_seen('b_pair', ROW(1, 2)::pair);
ALTER TYPE pair ADD ATTRIBUTE c json CASCADE;
-- A server that is gone without the filter.
CREATE FOREIGN TABLE c_far (id int) SERVER streamfilter OPTIONS (servers 'far,away', kind 'bloom', memory '1MB', k '4');
-- Children of a filter that cannot be read.
CREATE FOREIGN TABLE d_root (m int, n int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
CREATE FOREIGN TABLE e_leaf (m int, n int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'd_root');
RESET ROLE;
-- As by a wrong hand in the catalog, or by another version.
UPDATE pg_foreign_table SET ftoptions = array_replace(ftoptions, 'servers=far,away', 'servers=far,gone')
  WHERE ftrelid = 'c_far'::regclass;
UPDATE pg_foreign_table SET ftoptions = ftoptions || '{colour=red}'::text[] WHERE ftrelid = 'd_root'::regclass;
SELECT * FROM said ORDER BY filter::text, of;
SET ROLE regress_breaker;
SELECT filter, of, error IS NULL AS readable FROM said WHERE of = 'stats' ORDER BY filter::text;

-- What is wrong is raised where the filter is used.
SELECT streamfilter_test('a_mood', 'glad');
SELECT streamfilter_test('b_pair', ROW(1, 2, NULL)::pair);
SELECT streamfilter_test('c_far', 1);
SELECT streamfilter_test('d_root', 1, 1);
SELECT streamfilter_test('e_leaf', 1, 1);
SELECT filter, kind, error FROM streamfilter_stats WHERE filter = 0;

-- The others are saved, and it is said which are not.
SELECT streamfilter_save();
RESET ROLE;
SELECT kind, error FROM _streamfilter.streamfilter_stat('pg_class'::regclass);
INSERT INTO sound VALUES (2);
SELECT streamfilter_save();
SELECT last_saved IS NOT NULL AS saved FROM streamfilter_stats WHERE filter = 'sound'::regclass;
-- What the transaction has added stays, whatever the save had to roll back.
BEGIN;
INSERT INTO sound VALUES (3);
SAVEPOINT s;
SELECT streamfilter_save();
ROLLBACK TO s;
SELECT streamfilter_test('sound', 3);
COMMIT;
SELECT streamfilter_test('sound', 3);

-- Nobody else is kept from anything: servers, other filters, other roles.
ALTER SERVER streamfilter OPTIONS (ADD memory_limit '1GB');
CREATE FOREIGN TABLE another (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
ALTER SERVER streamfilter OPTIONS (DROP memory_limit);
ALTER SERVER far OPTIONS (ADD dbname 'x');
ALTER SERVER away RENAME TO off;
SELECT streamfilter_seen('another', 1);
DROP FOREIGN TABLE another;
-- A child that cannot be read does not keep its parent from being altered.
UPDATE pg_foreign_table SET ftoptions = array_remove(ftoptions, 'colour=red') WHERE ftrelid = 'd_root'::regclass;
UPDATE pg_foreign_table SET ftoptions = ftoptions || '{colour=red}'::text[] WHERE ftrelid = 'e_leaf'::regclass;
ALTER FOREIGN TABLE d_root OPTIONS (ADD conflict 'admit');
SELECT streamfilter_seen('d_root', 1, 1);
-- A filter that cannot be read can be mended or dropped; its servers, which ALTER does not change, only made again.
UPDATE pg_foreign_table SET ftoptions = array_remove(ftoptions, 'colour=red') WHERE ftrelid = 'e_leaf'::regclass;
SELECT streamfilter_test('e_leaf', 1, 1);
ALTER FOREIGN TABLE c_far OPTIONS (SET servers 'far,off');
SELECT filter, kind, error FROM streamfilter_stats WHERE filter = 'c_far'::regclass;
DROP FOREIGN TABLE a_mood, b_pair, c_far;
-- Nor does a table get a partition that cannot be one.
CREATE TABLE parted (id int) PARTITION BY LIST (id);
ALTER TABLE parted ATTACH PARTITION sound DEFAULT;

DROP SCHEMA unreadable CASCADE;
DROP SERVER far, off;
REVOKE USAGE ON FOREIGN SERVER streamfilter FROM regress_breaker;
DROP ROLE regress_breaker;
