--
-- Option mode of filters, and the setting streamfilter.mode
--
CREATE FUNCTION mode_of(filter regclass) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', mode, 'tested', tested, 'accepted', accepted, 'discarded', discarded,
                   'would_discard', would_discard)
  FROM streamfilter_stats s WHERE s.filter = $1;
$$;
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE t (id int, repeat boolean);
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id');
INSERT INTO t VALUES (1), (2);
INSERT INTO t VALUES (1), (3) RETURNING id;
SELECT mode_of('seen');

-- ---- ALTER keeps what is known -------------------------------------------------------------------

ALTER FOREIGN TABLE seen OPTIONS (ADD mode 'shadow');
INSERT INTO t VALUES (1), (4), (NULL) RETURNING id;
SELECT mode_of('seen');
SELECT streamfilter_test('seen', 4);
ALTER FOREIGN TABLE seen OPTIONS (SET mode 'off');
INSERT INTO t VALUES (1), (5) RETURNING id;
SELECT mode_of('seen');
SELECT streamfilter_test('seen', 5), streamfilter_test('seen', 4);
BEGIN;
ALTER FOREIGN TABLE seen OPTIONS (SET mode 'enforce');
INSERT INTO t VALUES (1), (6) RETURNING id;
SAVEPOINT a;
ALTER FOREIGN TABLE seen OPTIONS (SET mode 'shadow');
INSERT INTO t VALUES (1), (6) RETURNING id;
ROLLBACK TO a;
INSERT INTO t VALUES (1), (6), (7) RETURNING id;
ROLLBACK;
INSERT INTO t VALUES (1), (7) RETURNING id;
ALTER FOREIGN TABLE seen OPTIONS (DROP mode);
INSERT INTO t VALUES (1), (4), (6) RETURNING id;
SELECT mode_of('seen');
-- Also of an unlogged filter.
CREATE FOREIGN TABLE loose (id int) SERVER streamfilter
  OPTIONS (kind 'sbf', memory '64kB', mode 'shadow', persistence 'unlogged');
INSERT INTO loose VALUES (1), (2);
ALTER FOREIGN TABLE loose OPTIONS (SET mode 'enforce');
SELECT streamfilter_seen('loose', 1), streamfilter_seen('loose', 3);
-- What is saved fits.
SELECT count(DISTINCT identity) FROM _streamfilter.streamfilter_log WHERE filter = 'seen'::regclass;
-- Other words.
ALTER FOREIGN TABLE seen OPTIONS (ADD mode 'on');
CREATE FOREIGN TABLE wrong (id int) SERVER streamfilter OPTIONS (mode '');

-- ---- the setting ---------------------------------------------------------------------------------

SHOW streamfilter.mode;
SET streamfilter.mode = 'dark';
SET streamfilter.mode = 'shadow';
INSERT INTO t VALUES (1), (8) RETURNING id;
SET streamfilter.mode = 'off';
INSERT INTO t VALUES (1), (8), (9) RETURNING id;
SET streamfilter.mode = '';
INSERT INTO t VALUES (1), (8), (9) RETURNING id;
SELECT mode_of('seen');
-- It goes with its transaction, and with a function.
BEGIN;
SET LOCAL streamfilter.mode = 'shadow';
INSERT INTO t VALUES (1) RETURNING id;
COMMIT;
INSERT INTO t VALUES (1) RETURNING id;
CREATE FUNCTION load(int) RETURNS SETOF t LANGUAGE sql SET streamfilter.mode = 'shadow'
AS $$ INSERT INTO t VALUES ($1) RETURNING * $$;
SELECT load(1);
INSERT INTO t VALUES (1) RETURNING id;
-- A prepared plan sees the change.
PREPARE add(int) AS INSERT INTO t VALUES ($1) RETURNING id;
EXECUTE add(1);
SET streamfilter.mode = 'shadow';
EXECUTE add(1);
-- It says enforce for a filter that is off.
ALTER FOREIGN TABLE seen OPTIONS (ADD mode 'off');
SET streamfilter.mode = 'enforce';
EXECUTE add(1);
RESET streamfilter.mode;
EXECUTE add(1);
ALTER FOREIGN TABLE seen OPTIONS (DROP mode);
-- streamfilter.enabled comes first.
SET streamfilter.enabled = off;
SET streamfilter.mode = 'enforce';
EXECUTE add(1);
SELECT streamfilter_seen('seen', 1), streamfilter_seen('seen', 10), streamfilter_seen('seen', 10);
RESET streamfilter.enabled;
EXECUTE add(1);
RESET streamfilter.mode;

-- ---- streamfilter_seen() -------------------------------------------------------------------------

TRUNCATE seen;
CREATE TABLE staged (id int);
INSERT INTO staged SELECT i % 100 FROM generate_series(1, 300) i;
INSERT INTO staged VALUES (NULL);
CREATE TABLE loaded (id int);
SET client_min_messages = error;  -- not of what is counted
SET streamfilter.lost_rows = warn;
SET streamfilter.mode = 'off';
SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', id);
SET streamfilter.mode = 'shadow';
SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', id);
RESET streamfilter.mode;
SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', id);
TRUNCATE seen;
SET streamfilter.batch_scan = off;
SET streamfilter.mode = 'off';
SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', id);
SET streamfilter.mode = 'shadow';
SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', id);
RESET streamfilter.mode;
SELECT count(*) FROM staged WHERE NOT streamfilter_seen('seen', id);
RESET streamfilter.batch_scan;
-- The mode changes while the statement runs, in the middle of a batch.
TRUNCATE seen;
CREATE FUNCTION switch_at(int) RETURNS boolean LANGUAGE plpgsql COST 1 AS $$
BEGIN
  IF $1 = 50 THEN PERFORM set_config('streamfilter.mode', 'enforce', false); END IF;
  RETURN true;
END $$;
SET streamfilter.mode = 'off';
SELECT count(*) FROM staged WHERE switch_at(id) AND NOT streamfilter_seen('seen', id);
RESET streamfilter.mode;
RESET client_min_messages;
RESET streamfilter.lost_rows;
-- A loop in PL/pgSQL keeps its expressions.
DO $$
DECLARE word text; answers text := '';
BEGIN
  FOREACH word IN ARRAY '{enforce,off,shadow,enforce,off}'::text[] LOOP
    PERFORM set_config('streamfilter.mode', word, true);
    answers := answers || ' ' || streamfilter_seen('seen', 1000);
  END LOOP;
  RAISE NOTICE '%', answers;
END $$;

-- ---- explicit commands on the filter are what they say -------------------------------------------

SET streamfilter.mode = 'off';
INSERT INTO seen VALUES (2000), (2000) RETURNING id;
SELECT * FROM seen WHERE id = 2000;
SELECT streamfilter_test('seen', 2000);
SET streamfilter.mode = 'shadow';
INSERT INTO seen VALUES (2000), (2001) RETURNING id;
SELECT * FROM seen WHERE id = 2001;
TRUNCATE seen;
SELECT * FROM seen WHERE id = 2001;
RESET streamfilter.mode;

-- ---- marks: rows pass as they come ---------------------------------------------------------------

CREATE TABLE marked (id int, repeat boolean);
CREATE TRIGGER zz BEFORE INSERT ON marked FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('loose', 'repeat', 'id');
INSERT INTO marked VALUES (1, NULL), (10, NULL) RETURNING *;
SET streamfilter.mode = 'shadow';
INSERT INTO marked VALUES (1, NULL), (1, false), (11, true) RETURNING *;
SET streamfilter.mode = 'off';
INSERT INTO marked VALUES (1, NULL), (12, true) RETURNING *;
RESET streamfilter.mode;
INSERT INTO marked VALUES (11, NULL), (12, NULL) RETURNING *;
SELECT mode_of('loose');

-- ---- what a trigger cannot judge may pass where nothing is asked ---------------------------------

ALTER TABLE t ADD UNIQUE (id, repeat);
INSERT INTO t VALUES (1, true) ON CONFLICT DO NOTHING RETURNING id;
SET streamfilter.mode = 'shadow';
INSERT INTO t VALUES (1, true) ON CONFLICT DO NOTHING RETURNING id;
SET streamfilter.mode = 'off';
INSERT INTO t VALUES (1, true) ON CONFLICT DO NOTHING RETURNING id;
INSERT INTO t VALUES (1, true) ON CONFLICT DO NOTHING RETURNING id;
RESET streamfilter.mode;

-- ---- partitions, slices, trees -------------------------------------------------------------------

CREATE TABLE parts (id int) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (100);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (100) TO (MAXVALUE);
CREATE FOREIGN TABLE diced (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', keys '1000', fpr '1e-6', slices '8', slicing 'vertical', mode 'shadow');
CREATE TRIGGER zz BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('diced');
INSERT INTO parts VALUES (1), (1), (100), (100);
SELECT mode_of('diced');
SET streamfilter.mode = 'enforce';
INSERT INTO parts VALUES (1), (2), (100), (101) RETURNING id;
RESET streamfilter.mode;
UPDATE parts SET id = id + 100 WHERE id = 1;
SELECT mode_of('diced');
-- The mode of the filter that is asked counts.
CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6', mode 'off');
CREATE FOREIGN TABLE leaf (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6', parent 'root');
CREATE FOREIGN TABLE dark_leaf (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', keys '1000', fpr '1e-6', parent 'root', mode 'shadow');
SELECT streamfilter_seen('leaf', 1), streamfilter_seen('leaf', 1), streamfilter_seen('root', 1),
       streamfilter_seen('dark_leaf', 1), streamfilter_seen('dark_leaf', 2), streamfilter_seen('leaf', 2);
SELECT mode_of('root'), mode_of('leaf'), mode_of('dark_leaf');

-- ---- who may say so ------------------------------------------------------------------------------

CREATE ROLE streamfilter_writer;
CREATE ROLE streamfilter_owner;
GRANT INSERT ON t, staged TO streamfilter_writer;
GRANT INSERT ON seen TO streamfilter_writer;
GRANT USAGE, CREATE ON SCHEMA public TO streamfilter_writer, streamfilter_owner;
GRANT USAGE ON FOREIGN SERVER streamfilter TO streamfilter_owner;
-- Not a role that may only insert: it could have repeats where the owner wants none.
SET ROLE streamfilter_writer;
SET streamfilter.mode = 'shadow';
INSERT INTO t VALUES (1);
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SET streamfilter.mode = 'off';
INSERT INTO t VALUES (1);
SELECT streamfilter_seen('seen', 1);
-- What the filter does anyway nobody needs to be asked for.
SET streamfilter.mode = 'enforce';
INSERT INTO t VALUES (3000), (3000);
SELECT streamfilter_seen('seen', 3000);
-- Code of others does not lend him their rights.
RESET ROLE;
CREATE FUNCTION insert_for_all(int) RETURNS void LANGUAGE sql SECURITY DEFINER
AS $$ INSERT INTO t VALUES ($1) $$;
CREATE FUNCTION load_for_all(int) RETURNS void LANGUAGE sql SECURITY DEFINER
SET streamfilter.mode = 'shadow' AS $$ INSERT INTO t VALUES ($1) $$;
SET ROLE streamfilter_writer;
SET streamfilter.mode = 'off';
SELECT insert_for_all(3000);
-- But they can do it for him.
SELECT load_for_all(3000);
RESET streamfilter.mode;
RESET ROLE;
-- A role that loads data.
GRANT SET ON PARAMETER streamfilter.mode TO streamfilter_writer;
SET ROLE streamfilter_writer;
SET streamfilter.mode = 'shadow';
INSERT INTO t VALUES (3000);
RESET streamfilter.mode;
RESET ROLE;
REVOKE SET ON PARAMETER streamfilter.mode FROM streamfilter_writer;
-- The owner of the table, and that of the filter.
ALTER FOREIGN TABLE seen OWNER TO streamfilter_owner;
SET ROLE streamfilter_owner;
SET streamfilter.mode = 'shadow';
RESET ROLE;
INSERT INTO t VALUES (3000);
SELECT streamfilter_seen('seen', 3000);
ALTER TABLE t OWNER TO streamfilter_writer;
SET ROLE streamfilter_writer;
SET streamfilter.mode = 'shadow';
INSERT INTO t VALUES (3000);
SELECT streamfilter_seen('seen', 3000);
RESET ROLE;
RESET streamfilter.mode;
SELECT count(*) FROM t WHERE id = 3000;

DROP FUNCTION insert_for_all, load_for_all, load, switch_at, mode_of;
DROP TABLE t, staged, loaded, marked, parts;
DROP FOREIGN TABLE seen, loose, diced, leaf, dark_leaf, root;
REVOKE USAGE, CREATE ON SCHEMA public FROM streamfilter_writer, streamfilter_owner;
REVOKE USAGE ON FOREIGN SERVER streamfilter FROM streamfilter_owner;
DROP ROLE streamfilter_writer, streamfilter_owner;
