-- streamfilter_slice, streamfilter_export and streamfilter_import: moving a slice to another filter, here
-- in the same database.
CREATE FOREIGN TABLE old_home (id int, url text) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '6', slices '4', seed '1');
CREATE FOREIGN TABLE new_home (id int, url text) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '6', slices '4', seed '1');
INSERT INTO old_home SELECT i, '/' FROM generate_series(1, 1000) i;

-- Equal parameters and seed: a key is in the same slice of both.
SELECT count(*) AS keys, count(DISTINCT streamfilter_slice('old_home', i, '/')) AS slices,
       bool_and(streamfilter_slice('old_home', i, '/') = streamfilter_slice('new_home', i, '/')) AS equal
FROM generate_series(1, 1000) i;
SELECT streamfilter_slice('old_home', NULL, '/') IS NULL AS no_key;

-- ---- a slice moves ------------------------------------------------------------------------------
SELECT streamfilter_import('new_home', 2, streamfilter_export('old_home', 2));
SELECT streamfilter_slice('new_home', i, '/') = 2 AS in_slice_2,
       count(*) FILTER (WHERE streamfilter_test('new_home', i, '/')) = count(*) AS all_known,
       count(*) FILTER (WHERE streamfilter_test('new_home', i, '/')) AS known
FROM generate_series(1, 1000) i GROUP BY 1 ORDER BY 1 DESC;
-- What was there before stays.
SELECT streamfilter_seen('new_home', 5000 + i, '/') AS new FROM generate_series(1, 3) i;
SELECT streamfilter_import('new_home', i, streamfilter_export('old_home', i)) FROM generate_series(0, 3) i;
SELECT count(*) AS known FROM generate_series(1, 1000) i WHERE streamfilter_test('new_home', i, '/');
SELECT streamfilter_test('new_home', 5000 + i, '/') AS known FROM generate_series(1, 3) i;

-- ---- as a part of its transaction ---------------------------------------------------------------
TRUNCATE new_home;
BEGIN;
SELECT streamfilter_import('new_home', 1, streamfilter_export('old_home', 1));
SELECT bool_and(streamfilter_test('new_home', i, '/')) AS seen_here
FROM generate_series(1, 1000) i WHERE streamfilter_slice('old_home', i, '/') = 1;
SAVEPOINT s;
SELECT streamfilter_import('new_home', 3, streamfilter_export('old_home', 3));
ROLLBACK TO s;
SELECT count(*) AS not_from_3 FROM generate_series(1, 1000) i
WHERE streamfilter_slice('old_home', i, '/') = 3 AND streamfilter_test('new_home', i, '/');
ROLLBACK;
SELECT count(*) AS known FROM generate_series(1, 1000) i WHERE streamfilter_test('new_home', i, '/');
-- What the own transaction has added is exported.
BEGIN;
SELECT streamfilter_seen('old_home', 7000, '/own') AS new, streamfilter_slice('old_home', 7000, '/own') AS slice;
SELECT streamfilter_import('new_home', s, streamfilter_export('old_home', s))
FROM streamfilter_slice('old_home', 7000, '/own') s;
SELECT streamfilter_test('new_home', 7000, '/own') AS moved;
COMMIT;
SELECT streamfilter_test('new_home', 7000, '/own') AS moved;

-- ---- every kind whose filters merge -------------------------------------------------------------
CREATE FUNCTION moves(options text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE missed int;
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE here (id int) SERVER streamfilter OPTIONS (%s, slices ''2'', seed ''5'')', options);
  EXECUTE format('CREATE FOREIGN TABLE there (id int) SERVER streamfilter OPTIONS (%s, slices ''2'', seed ''5'')', options);
  INSERT INTO here SELECT i FROM generate_series(1, 50) i;
  PERFORM streamfilter_import('there', i, streamfilter_export('here', i)) FROM generate_series(0, 1) i;
  SELECT count(*) INTO missed FROM generate_series(1, 50) i
  WHERE streamfilter_test('here', i) AND NOT streamfilter_test('there', i);
  DROP FOREIGN TABLE here, there;
  RETURN format('%s missed', missed);
EXCEPTION WHEN OTHERS THEN
  RETURN SQLERRM;
END $$;
SELECT o AS options, moves(o) FROM unnest(ARRAY[
  'kind ''bloom'', memory ''64kB'', k ''4''', 'kind ''sbf'', memory ''64kB'', fpr ''0.01''',
  'kind ''sqf'', memory ''64kB''', 'kind ''dsqf'', memory ''64kB''',
  'kind ''timer'', memory ''64kB'', window ''1 hour'', keys ''1000''', 'kind ''clq'', memory ''64kB''',
  'kind ''lru'', memory ''64kB''']) o;

-- ---- in a tree, the ancestors have it, too ------------------------------------------------------
CREATE FOREIGN TABLE leaf (id int, url text) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '6', slices '4', parent 'new_home');
TRUNCATE new_home, leaf;
SELECT streamfilter_import('leaf', 0, streamfilter_export('old_home', 0));
SELECT bool_and(streamfilter_test('leaf', i, '/') AND streamfilter_test('new_home', i, '/')) AS known
FROM generate_series(1, 1000) i WHERE streamfilter_slice('old_home', i, '/') = 0;
DROP FOREIGN TABLE leaf;

-- ---- errors -------------------------------------------------------------------------------------
SELECT streamfilter_export('old_home', 4);
SELECT streamfilter_export('old_home', -1);
SELECT streamfilter_import('new_home', 1, streamfilter_export('old_home', 2));
SELECT streamfilter_import('new_home', 4, streamfilter_export('old_home', 2));
CREATE FOREIGN TABLE other_seed (id int, url text) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '6', slices '4', seed '2');
CREATE FOREIGN TABLE other_shape (id int, url text) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '6', slices '2', seed '1');
SELECT streamfilter_import('other_seed', 1, streamfilter_export('old_home', 1));
SELECT streamfilter_import('other_shape', 1, streamfilter_export('old_home', 1));
-- Damaged bytes: short, of something else, changed in the header, in the slice, in the number.
SELECT streamfilter_import('new_home', 1, '\x00');
SELECT streamfilter_import('new_home', 1, streamfilter_send(streamfilter_value('old_home')));
CREATE TABLE packet AS SELECT streamfilter_export('old_home', 1) AS bytes;
SELECT streamfilter_import('new_home', 1, set_byte(bytes, 200, get_byte(bytes, 200) # 1)) FROM packet;
SELECT streamfilter_import('new_home', 1, set_byte(bytes, 2000, get_byte(bytes, 2000) # 1)) FROM packet;
SELECT streamfilter_import('new_home', 2, set_byte(bytes, 0, 2)) FROM packet;
SELECT streamfilter_import('new_home', 1, substr(bytes, 1, length(bytes) - 8)) FROM packet;
-- Rights: SELECT to export, INSERT to import.
CREATE ROLE mover;
SET ROLE mover;
SELECT length(streamfilter_export('old_home', 1)) > 0 AS exported;
RESET ROLE;
GRANT SELECT ON old_home, new_home TO mover;
SET ROLE mover;
SELECT length(streamfilter_export('old_home', 1)) > 0 AS exported;
SELECT streamfilter_import('new_home', 1, streamfilter_export('old_home', 1));
RESET ROLE;
GRANT INSERT ON new_home TO mover;
SET ROLE mover;
SELECT streamfilter_import('new_home', 1, streamfilter_export('old_home', 1));
RESET ROLE;
BEGIN READ ONLY;
SELECT length(streamfilter_export('old_home', 1)) > 0 AS exported;
SELECT streamfilter_import('new_home', 1, streamfilter_export('old_home', 1));
ROLLBACK;
REVOKE ALL ON old_home, new_home FROM mover;
DROP ROLE mover;
DROP FOREIGN TABLE old_home, new_home, other_seed, other_shape;
DROP TABLE packet;
DROP FUNCTION moves;
