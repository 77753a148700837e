-- Options of filters on other servers. Nothing here connects; test/t/servers_filters.pl and servers_lost.pl do.
CREATE SCHEMA servers;
SET search_path = servers, public;

-- Servers and user mappings.
CREATE SERVER one FOREIGN DATA WRAPPER streamfilter
  OPTIONS (host 'one.invalid', port '5433', dbname 'events', connect_timeout '2s', timeout '500');
CREATE SERVER two FOREIGN DATA WRAPPER streamfilter OPTIONS (host 'two.invalid', sslmode 'require');
CREATE SERVER here FOREIGN DATA WRAPPER streamfilter OPTIONS (memory_limit '1MB');
SELECT format('CREATE SERVER bad FOREIGN DATA WRAPPER streamfilter OPTIONS (%s)', options) FROM unnest(ARRAY[
  $$hots 'one'$$, $$host 'one', port 'x'$$, $$host 'one', port '70000'$$, $$host 'one', timeout '0'$$,
  $$host 'one', timeout '2 hours'$$, $$host 'one', timeout 'soon'$$, $$host 'one', password 'secret'$$]) AS options \gexec
-- What libpq has; but not what is set here, nor what would use files and services of this server's account.
CREATE SERVER three_hosts FOREIGN DATA WRAPPER streamfilter
  OPTIONS (host 'one,two,three', port '5432,5433,5434', target_session_attrs 'read-write', keepalives_idle '10',
           tcp_user_timeout '2000', idle_timeout '1 min');
DROP SERVER three_hosts;
SELECT format('CREATE SERVER bad FOREIGN DATA WRAPPER streamfilter OPTIONS (%s)', options) FROM unnest(ARRAY[
  $$host 'one,two', port '5432,x'$$, $$host 'one', passfile '/tmp/x'$$, $$host 'one', service 'x'$$,
  $$host 'one', options '-c x=y'$$, $$host 'one', sslkey '/tmp/x'$$, $$host 'one', idle_timeout '2 days'$$]) AS options \gexec
ALTER SERVER one OPTIONS (SET connect_timeout '1 d');
CREATE USER MAPPING FOR CURRENT_USER SERVER one OPTIONS (user 'me', password 'secret');
CREATE USER MAPPING FOR CURRENT_USER SERVER two OPTIONS (host 'two');

-- Filters.
CREATE FOREIGN TABLE f (id int) SERVER one OPTIONS (kind 'bloom', memory '1MB', k '4');
CREATE FOREIGN TABLE g (id int) SERVER streamfilter
  OPTIONS (servers 'one, two', kind 'bloom', memory '1MB', k '4', slicing 'vertical',
           probe 'pipelined', lost_slice 'votes:3');
-- No server knows the rate of a key that has places on several: repeats cannot pass while there are too many keys.
CREATE FOREIGN TABLE overfull (id int) SERVER streamfilter OPTIONS (servers 'one, two', kind 'bloom', keys '1000', fpr '0.01', slices '4', slicing 'vertical');
ALTER FOREIGN TABLE overfull OPTIONS (ADD overfull 'pass');
ALTER FOREIGN TABLE overfull OPTIONS (ADD overfull 'discard');
SET streamfilter.mode = off;
DROP FOREIGN TABLE overfull;
CREATE FOREIGN TABLE overfull (id int) SERVER streamfilter OPTIONS (servers 'one, two', kind 'bloom', keys '1000', fpr '0.01', slices '4', overfull 'pass');
DROP FOREIGN TABLE overfull;
RESET streamfilter.mode;
CREATE FOREIGN TABLE overfull (id int) SERVER streamfilter
  OPTIONS (servers 'one, two', kind 'bloom', keys '1000', fpr '0.01', slices '4', k1 '2', k2 '4', overfull 'pass');
EXPLAIN (COSTS OFF) INSERT INTO g VALUES (1);
EXPLAIN (COSTS OFF) SELECT * FROM f WHERE id = 1;
SELECT slice, server, lost, answered FROM streamfilter_slices WHERE filter = 'g'::regclass AND slice < 2
ORDER BY slice;
SELECT count(*) % 2 AS rest FROM streamfilter_slices WHERE filter = 'g'::regclass;
SELECT kind, memory, tested, fill, created FROM streamfilter_stats WHERE filter = 'f'::regclass;
-- No filter takes the room of the counters of all others.
CREATE FOREIGN TABLE many (id int) SERVER one OPTIONS (kind 'bloom', memory '1MB', k '4', slices '300');
SELECT count(*), count(answered) AS counted FROM streamfilter_slices WHERE filter = 'many'::regclass;
SET streamfilter.mode = off;  -- it would ask the servers
DROP FOREIGN TABLE many;
RESET streamfilter.mode;
SELECT format('CREATE FOREIGN TABLE bad (id int) SERVER %s OPTIONS (%s)', server, options) FROM (VALUES
  ('one', $$servers 'two', kind 'sbf'$$), ('streamfilter', $$servers 'three', kind 'sbf'$$),
  ('streamfilter', $$servers 'one,here', kind 'sbf'$$), ('streamfilter', $$servers 'one,one', kind 'sbf'$$),
  ('streamfilter', $$servers 'one,,', kind 'sbf'$$), ('streamfilter', $$servers 'one,two', kind 'sbf', slices '1'$$),
  ('streamfilter', $$servers 'one,two', kind 'sqf', fingerprint 'integer', memory '1MB', keys '100000'$$),
  ('one', $$kind 'sbf', probe 'both'$$), ('one', $$kind 'sbf', lost_slice 'new'$$), ('one', $$kind 'sbf', lost_slice 'votes'$$),
  ('one', $$kind 'sbf', lost_slice 'votes:0'$$), ('one', $$kind 'sbf', lost_slice 'hybrid:x'$$),
  ('one', $$kind 'sbf', lost_slice 'distinct'$$)) AS bad (server, options) \gexec
CREATE FOREIGN TABLE child (id int) SERVER one OPTIONS (kind 'bloom', memory '1MB', k '4', parent 'f');
SET streamfilter.mode = off;  -- it would ask the servers
DROP FOREIGN TABLE bad;
RESET streamfilter.mode;
IMPORT FOREIGN SCHEMA public FROM SERVER here INTO servers;
-- Servers that filters name.
ALTER SERVER two RENAME TO three;
ALTER SERVER two OPTIONS (DROP host);
ALTER SERVER one OPTIONS (DROP host, DROP port, DROP dbname);
ALTER SERVER here RENAME TO there;
ALTER SERVER there RENAME TO here;

-- The filter's owner connects: without USAGE on a server it is no place for filters.
CREATE ROLE servers_user;
GRANT USAGE ON FOREIGN SERVER streamfilter TO servers_user;
GRANT USAGE, CREATE ON SCHEMA servers TO servers_user;
SET ROLE servers_user;
CREATE FOREIGN TABLE of_user (id int) SERVER streamfilter OPTIONS (servers 'one,two', kind 'bloom', memory '1MB', k '4');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER one, two TO servers_user;
CREATE USER MAPPING FOR servers_user SERVER one OPTIONS (user 'me');
SET ROLE servers_user;
CREATE FOREIGN TABLE of_user (id int) SERVER one OPTIONS (kind 'bloom', memory '1MB', k '4');
SELECT streamfilter_seen('of_user', 1);
RESET ROLE;

-- Filters depend on their servers, which ALTER does not change.
DROP SERVER two;
ALTER FOREIGN TABLE g OPTIONS (SET servers 'one');
DROP FOREIGN TABLE g;
DROP SERVER two;

-- The functions that other servers call.
CREATE FOREIGN TABLE own (hash bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
SELECT streamfilter_hashes_seen('own', '{1,2,1}'), streamfilter_hashes_test('own', '{1,2,3}');
SELECT streamfilter_hashes_reserve('own', '{1,4}'), streamfilter_hashes_put('own', '{4,5,5}');
SELECT streamfilter_hashes_test('own', '{}'), streamfilter_hashes_test('own', '{4,5}');
SELECT streamfilter_hashes_seen('own', '{1,NULL}');
SELECT streamfilter_hashes_seen('own', '{1,2}', times => '{1}');
SELECT streamfilter_hashes_seen('f', '{1}');
SELECT streamfilter_hashes_erase('own', '{1}');
SELECT * FROM streamfilter_hashes_define('servers', 'own', NULL, NULL, NULL, NULL);
SELECT * FROM streamfilter_hashes_define('servers', 'none', NULL, NULL, NULL, NULL);
SELECT * FROM streamfilter_hashes_define('servers', 'made', 'bloom(memory=64kB, seed=7, k=4)', 'wait',
                                         'unlogged', '{}');
SELECT * FROM streamfilter_hashes_define('servers', 'made', 'sbf(memory=1MB)', 'wait', 'unlogged', '{}');
SELECT ftoptions FROM pg_foreign_table WHERE ftrelid = 'made'::regclass;
SELECT * FROM streamfilter_hashes_define('servers', 'bad', 'bloom(k=4) OPTIONS (x', NULL, NULL, '{}');
SELECT * FROM streamfilter_hashes_define('servers', 'bad', 'bloom(k=4', NULL, NULL, '{}');
-- A definition is read once, by the one parser there is, and becomes options as they are.
SELECT * FROM streamfilter_hashes_define('servers', 'ranged',
  'ibfmc(                    importance_range="0,1", memory = 64kB)', 'wait', 'logged', '{"by": "x"}');
SELECT ftoptions FROM pg_foreign_table WHERE ftrelid = 'ranged'::regclass;
SELECT * FROM streamfilter_hashes_define('servers', 'diced',
  'bloom(memory=1MB, keys=1e5, fpr=0.02, nulls=''not distinct'', slicing=diced, dice=vh, slices=''3,2'')',
  'admit', 'unlogged', '{"it''''s": "\"x\""}');
SELECT ftoptions FROM pg_foreign_table WHERE ftrelid = 'diced'::regclass;
SELECT * FROM streamfilter_hashes_define('servers', 'windowed', 'auto(window="10 minutes", memory=64kB, keys=1000)',
  NULL, NULL, '{}');
SELECT ftoptions FROM pg_foreign_table WHERE ftrelid = 'windowed'::regclass;
SELECT * FROM streamfilter_hashes_define('servers', 'listed', 'clq(                    importance_range="0,1")',
  'wait', 'logged', '{}');
SELECT * FROM streamfilter_hashes_define('servers', 'bad', 'bloom(memory=64kB, k=4)', 'wait'') --', NULL, '{}');
SELECT * FROM streamfilter_hashes_define('servers', 'bad', '', NULL, NULL, '{}');
SELECT * FROM streamfilter_hashes_define('servers', 'bad', 'bloom(memory=64kB, "k=4)', NULL, NULL, '{}');
SELECT * FROM streamfilter_hashes_define('servers', 'bad', repeat('(', 100000), NULL, NULL, '{}');
SELECT * FROM streamfilter_hashes_define('servers', 'bad', 'bloom(k=' || repeat('4', 100000) || ')', NULL, NULL, '{}');
BEGIN READ ONLY;
SELECT * FROM streamfilter_hashes_define('servers', 'bad', 'bloom(memory=64kB, k=4)', NULL, NULL, '{}');
ROLLBACK;
SET ROLE servers_user;
SELECT streamfilter_hashes_seen('own', '{1}');
SELECT streamfilter_hashes_test('own', '{1}');
SELECT streamfilter_hashes_erase('own', '{1}');
-- A definition tells the seed: not to everybody. Nor does anybody without USAGE make a filter, or hold up those who do.
SELECT * FROM streamfilter_hashes_define('servers', 'made', NULL, NULL, NULL, NULL);
RESET ROLE;
REVOKE USAGE ON FOREIGN SERVER streamfilter FROM servers_user;
SET ROLE servers_user;
SELECT * FROM streamfilter_hashes_define('servers', 'theirs', 'bloom(memory=64kB, k=4)', NULL, NULL, '{}');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER streamfilter TO servers_user;
CREATE FOREIGN TABLE secret (hash bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
SELECT streamfilter_hashes_seen('secret', '{1}');
SET ROLE servers_user;
CREATE FOREIGN TABLE spy (hash bigint) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'secret', producer '{}');
SELECT definition FROM streamfilter_hashes_define('servers', 'spy', NULL, NULL, NULL, NULL);
CREATE FOREIGN TABLE spy2 (hash bigint) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'secret', seed '1', producer '{}');
SELECT params ? 'seed' AS shown FROM streamfilter_stats WHERE filter IN ('spy'::regclass, 'secret'::regclass);
RESET ROLE;

-- Definition 3. The figures of the text: max. 0.15, 4 lost, k = 4, a filter with fpr 0.02.
SELECT streamfilter_slices_needed(4, max_fpr => 0.15, fpr => 0.02) AS horizontal,
       streamfilter_slices_needed(4, 4, max_fpr => 0.15, fpr => 0.02) AS vertical,
       streamfilter_slices_needed(1, max_fnr => 0.05) AS horizontal_fnr,
       streamfilter_slices_needed(1, 4, max_fnr => 0.05) AS vertical_fnr;
SELECT streamfilter_slices_needed(1, max_fpr => 0.01, fpr => 0.02);
SELECT streamfilter_slices_needed(1);
SELECT streamfilter_slices_needed(0, max_fnr => 0.1);
SELECT streamfilter_slices_needed(1, max_fnr => 1.5);

SET streamfilter.mode = off;
DROP SCHEMA servers CASCADE;
DROP SERVER one, here CASCADE;
REVOKE USAGE ON FOREIGN SERVER streamfilter FROM servers_user;
DROP ROLE servers_user;
