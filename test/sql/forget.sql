--
-- streamfilter_forget: a filter follows its table
--
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '1e-6');
CREATE TABLE t (id int, payload text);
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO t SELECT generate_series(1, 10);

-- ---- without it, a hint, once a session ----------------------------------------------------------

DELETE FROM t WHERE id > 100;
CREATE TABLE other (id int);
INSERT INTO other VALUES (1);
DELETE FROM other;
DELETE FROM t WHERE id = 1;
DELETE FROM t WHERE id = 2;
-- Once of each filter.
CREATE FOREIGN TABLE seen_numbers (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
CREATE TABLE numbers (number int);
CREATE TRIGGER zz BEFORE INSERT ON numbers FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_numbers', 'number');
INSERT INTO numbers VALUES (1), (2), (3);
DELETE FROM numbers WHERE number = 1;
CREATE TRIGGER forget AFTER DELETE OR UPDATE ON public.numbers FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('public.seen_numbers', 'number');
DELETE FROM numbers WHERE number = 2;
INSERT INTO numbers VALUES (1), (2), (3) RETURNING *;
DROP TABLE numbers;
-- Nothing to type for a kind that forgets no single keys.
CREATE FOREIGN TABLE seen_bits (number int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '100');
CREATE TABLE numbers (number int);
CREATE TRIGGER zz BEFORE INSERT ON numbers FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_bits');
INSERT INTO numbers VALUES (1);
DELETE FROM numbers;
DROP TABLE numbers;
DROP FOREIGN TABLE seen_numbers, seen_bits;
TRUNCATE t;
\c
TRUNCATE t;
\c
-- Not where the filter is emptied, too.
TRUNCATE t, seen;
INSERT INTO t SELECT generate_series(1, 10);
PREPARE gone(int) AS DELETE FROM t WHERE id = $1;
EXECUTE gone(1);
TRUNCATE t, seen;

-- ---- CREATE TRIGGER ------------------------------------------------------------------------------

CREATE TRIGGER wrong BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER wrong AFTER INSERT OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen');
CREATE TRIGGER wrong AFTER DELETE ON t FOR EACH STATEMENT EXECUTE FUNCTION streamfilter_forget('seen');
CREATE TRIGGER wrong AFTER DELETE OR TRUNCATE ON t FOR EACH STATEMENT EXECUTE FUNCTION streamfilter_forget('seen');
CREATE TRIGGER wrong BEFORE TRUNCATE ON t EXECUTE FUNCTION streamfilter_forget('seen');
CREATE TRIGGER wrong AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget();
CREATE TRIGGER wrong AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('unseen');
CREATE TRIGGER wrong AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('other');
CREATE TRIGGER wrong AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen', 'di');
CREATE TRIGGER wrong AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen', 'id', 'payload');
SELECT streamfilter_forget();
-- Kinds that cannot forget single keys.
CREATE FOREIGN TABLE known (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TRIGGER wrong AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('known');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TRIGGER all_gone AFTER TRUNCATE ON other EXECUTE FUNCTION streamfilter_forget('known');

-- ---- DELETE and UPDATE ---------------------------------------------------------------------------

CREATE TRIGGER follow AFTER DELETE OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen');
CREATE FUNCTION known_ids(filter regclass, last int DEFAULT 40) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(i::text, ' ' ORDER BY i) FROM generate_series(1, last) i WHERE streamfilter_test($1, i)
$$;
INSERT INTO t SELECT generate_series(1, 5);
DELETE FROM t WHERE id IN (2, 4) RETURNING id;
SELECT known_ids('seen');
INSERT INTO t VALUES (1), (2), (2), (3) RETURNING id;
UPDATE t SET id = 11 WHERE id = 1;
UPDATE t SET payload = 'x';
UPDATE t SET id = id;
SELECT known_ids('seen');
INSERT INTO t VALUES (1), (11) RETURNING id;
-- Keys that move on, from either end.
TRUNCATE t, seen;
INSERT INTO t SELECT generate_series(1, 5);
UPDATE t SET id = id + 1;
SELECT known_ids('seen');
UPDATE t SET id = id - 1;
SELECT known_ids('seen');
UPDATE t SET id = 6 - id;
SELECT known_ids('seen');
-- To a key that is known, and to and from NULL.
TRUNCATE t, seen;
INSERT INTO t SELECT generate_series(1, 5);
INSERT INTO t VALUES (NULL), (NULL);
UPDATE t SET id = 2 WHERE id = 1;
SELECT known_ids('seen');
UPDATE t SET id = NULL WHERE id = 3;
UPDATE t SET id = 6 WHERE ctid = (SELECT min(ctid) FROM t WHERE id IS NULL);
SELECT known_ids('seen');
DELETE FROM t WHERE id IS NULL;
-- The first row that goes takes the key of both.
DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t WHERE id = 2);
SELECT known_ids('seen');
-- What rolls back was not forgotten.
BEGIN; DELETE FROM t WHERE id = 4; SELECT known_ids('seen'); ROLLBACK;
SELECT known_ids('seen');
BEGIN;
SAVEPOINT a;
UPDATE t SET id = 14 WHERE id = 4;
SELECT known_ids('seen');
ROLLBACK TO a;
SELECT known_ids('seen');
DELETE FROM t WHERE id = 5;
INSERT INTO t VALUES (5), (5) RETURNING id;
COMMIT;
SELECT known_ids('seen');
-- The same key in one statement that takes and gives.
WITH gone AS (DELETE FROM t WHERE id = 5 RETURNING id) INSERT INTO t SELECT id FROM gone RETURNING id;
-- A key that one row gives up and another gets.
TRUNCATE t, seen;
INSERT INTO t VALUES (4), (5), (6);
WITH changed AS (UPDATE t SET id = 4 WHERE id = 5) DELETE FROM t WHERE id = 4;
UPDATE t SET id = 10 - id;
SELECT known_ids('seen');
UPDATE t SET id = 10 - id;
-- MERGE.
MERGE INTO t USING (VALUES (4), (6)) AS s (id) ON t.id = s.id
WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET id = 16;
SELECT known_ids('seen');
-- A trigger for some columns or rows only, and with the columns named.
DROP TRIGGER follow ON t;
CREATE TRIGGER follow AFTER UPDATE OF payload ON t FOR EACH ROW WHEN (new.payload = 'gone')
  EXECUTE FUNCTION streamfilter_forget('seen', 'id');
TRUNCATE t, seen;
INSERT INTO t VALUES (1), (2);
UPDATE t SET id = 3 WHERE id = 1;
UPDATE t SET id = 4, payload = 'gone' WHERE id = 2;
SELECT known_ids('seen');
-- A deferred one.
DROP TRIGGER follow ON t;
TRUNCATE t, seen;
INSERT INTO t VALUES (1), (2), (3);
CREATE CONSTRAINT TRIGGER follow AFTER DELETE ON t DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen');
BEGIN; DELETE FROM t WHERE id = 2; SELECT known_ids('seen'); COMMIT;
SELECT known_ids('seen');
SELECT pg_get_triggerdef(oid) AS definition FROM pg_trigger WHERE tgname = 'follow' \gset
DROP TRIGGER follow ON t;
\echo :definition
:definition;
DELETE FROM t WHERE id = 1;
SELECT known_ids('seen');
DROP TRIGGER follow ON t;

-- ---- modes, statistics ---------------------------------------------------------------------------

CREATE TRIGGER follow AFTER DELETE OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen');
CREATE TRIGGER follow_all AFTER TRUNCATE ON t EXECUTE FUNCTION streamfilter_forget('seen');
TRUNCATE t;
SELECT known_ids('seen');
INSERT INTO t SELECT generate_series(1, 6);
SET streamfilter.mode = 'off';
DELETE FROM t WHERE id = 1;
SET streamfilter.mode = 'shadow';
DELETE FROM t WHERE id = 2;
RESET streamfilter.mode;
SET streamfilter.enabled = off;
DELETE FROM t WHERE id = 3;
RESET streamfilter.enabled;
ALTER TABLE t DISABLE TRIGGER follow;
DELETE FROM t WHERE id = 4;
ALTER TABLE t ENABLE TRIGGER follow;
SELECT known_ids('seen');
SELECT streamfilter_stats_reset('seen');
DELETE FROM t WHERE id = 5;
UPDATE t SET id = 7 WHERE id = 6;
SELECT trigger, kind, rows, discarded FROM streamfilter_triggers WHERE "table" = 't'::regclass ORDER BY 1;
SELECT tested, accepted, discarded, lost_estimate FROM streamfilter_stats WHERE filter = 'seen'::regclass;

-- ---- TRUNCATE ------------------------------------------------------------------------------------

BEGIN;
TRUNCATE t;
SELECT known_ids('seen');
INSERT INTO t VALUES (1), (1), (20) RETURNING id;
SAVEPOINT a;
TRUNCATE t;
INSERT INTO t VALUES (20) RETURNING id;
ROLLBACK TO a;
INSERT INTO t VALUES (20), (21) RETURNING id;
ROLLBACK;
SELECT known_ids('seen');
TRUNCATE t;
SELECT known_ids('seen');
INSERT INTO t VALUES (1), (1), (20) RETURNING id;
INSERT INTO other VALUES (1);
INSERT INTO known VALUES (1), (2);
TRUNCATE other;
SELECT known_ids('known');

-- ---- partitions ----------------------------------------------------------------------------------

CREATE FOREIGN TABLE seen_parts (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB', fpr '1e-4');
CREATE TABLE parts (region int, id int) PARTITION BY LIST (region);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 (junk text, id int, region int);
ALTER TABLE parts_2 DROP junk;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
CREATE TRIGGER zz BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_parts');
CREATE TRIGGER follow AFTER DELETE OR UPDATE ON parts FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen_parts');
INSERT INTO parts SELECT 1 + i % 2, i FROM generate_series(1, 8) i;
DELETE FROM parts WHERE id IN (1, 2);
UPDATE parts SET id = 11 WHERE id = 3;
SELECT known_ids('seen_parts');
-- A row that moves keeps its key.
UPDATE parts SET region = 3 - region WHERE id IN (4, 5);
SELECT known_ids('seen_parts');
MERGE INTO parts USING (VALUES (6)) AS s (id) ON parts.id = s.id WHEN MATCHED THEN UPDATE SET region = 2;
SELECT known_ids('seen_parts');
-- One that moves with another key leaves the old one.
UPDATE parts SET region = 3 - region, id = 17 WHERE id = 7;
SELECT known_ids('seen_parts');
-- Keys that move on through the partitions.
TRUNCATE parts, seen_parts;
INSERT INTO parts SELECT 1 + i % 2, i FROM generate_series(1, 8) i;
UPDATE parts SET id = id + 1;
SELECT known_ids('seen_parts');
DELETE FROM parts_2 WHERE id = 4;
SELECT known_ids('seen_parts');

-- ---- rows that go with others --------------------------------------------------------------------

CREATE TABLE parents (id int PRIMARY KEY);
CREATE TABLE children (id int, parent int REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE);
CREATE FOREIGN TABLE seen_children (parent int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB');
CREATE TRIGGER zz BEFORE INSERT ON children FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_children');
CREATE TRIGGER follow AFTER DELETE OR UPDATE ON children FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen_children');
INSERT INTO parents SELECT generate_series(1, 4);
INSERT INTO children SELECT i, i FROM generate_series(1, 4) i;
DELETE FROM parents WHERE id = 1;
UPDATE parents SET id = 12 WHERE id = 2;
SELECT known_ids('seen_children');

-- ---- a key that is generated, and one of another type --------------------------------------------

CREATE TABLE g (a int, id int GENERATED ALWAYS AS (a * 2) STORED);
CREATE FOREIGN TABLE seen_g (id bigint) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB');
CREATE TRIGGER follow AFTER DELETE OR UPDATE ON g FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen_g');
INSERT INTO g VALUES (1), (2), (3);
INSERT INTO seen_g SELECT id FROM g;
DELETE FROM g WHERE a = 1;
UPDATE g SET a = 10 WHERE a = 2;
SELECT known_ids('seen_g');

-- ---- the trigger means its filter ----------------------------------------------------------------

ALTER FOREIGN TABLE seen_g RENAME TO seen_g2;
DELETE FROM g WHERE a = 3;
SELECT known_ids('seen_g2');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'g'::regclass;
DROP FOREIGN TABLE seen_g2;
-- What a trigger needs stays.
ALTER FOREIGN TABLE seen_g2 OPTIONS (SET kind 'bloom', ADD keys '1000');
ALTER TABLE g DROP COLUMN id;
ALTER FOREIGN TABLE seen_g2 OPTIONS (SET kind 'clq');
DROP FOREIGN TABLE seen_g2 CASCADE;
DELETE FROM g;

-- ---- rights --------------------------------------------------------------------------------------

CREATE ROLE streamfilter_owner;
CREATE ROLE streamfilter_deleter;
GRANT USAGE, CREATE ON SCHEMA public TO streamfilter_owner, streamfilter_deleter;
TRUNCATE t;
INSERT INTO t SELECT generate_series(1, 5);
ALTER TABLE t OWNER TO streamfilter_owner;
GRANT INSERT ON seen TO streamfilter_owner;
ALTER TABLE t OWNER TO streamfilter_owner;
GRANT DELETE, TRUNCATE ON seen TO streamfilter_owner;
ALTER TABLE t OWNER TO streamfilter_owner;
GRANT SELECT, UPDATE, DELETE, TRUNCATE ON t TO streamfilter_deleter;
-- The role that deletes needs no right on the filter.
SET ROLE streamfilter_deleter;
DELETE FROM t WHERE id = 1;
UPDATE t SET id = 12 WHERE id = 2;
RESET ROLE;
SELECT known_ids('seen');
REVOKE DELETE ON seen FROM streamfilter_owner;
DELETE FROM t WHERE id = 3;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
REVOKE TRUNCATE ON seen FROM streamfilter_owner;
TRUNCATE t;
-- The trigger of a table whose owner has no right is refused, while restoring warned of.
DROP TRIGGER follow ON t;
CREATE TRIGGER follow AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen');
SET check_function_bodies = off;
CREATE TRIGGER follow AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen');
DROP TRIGGER follow ON t;
DROP TRIGGER follow_all ON t;
-- Nor may he leave keys behind by a setting.
CREATE TRIGGER follow AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen');
RESET check_function_bodies;
GRANT DELETE, INSERT ON seen TO streamfilter_owner;
SET ROLE streamfilter_deleter;
SET streamfilter.mode = 'off';
UPDATE t SET id = 13 WHERE id = 3;
RESET streamfilter.mode;
RESET ROLE;

DROP TABLE t, other, parts, children, parents, g;
DROP FOREIGN TABLE seen, known, seen_parts, seen_children;
DROP FUNCTION known_ids;
REVOKE USAGE, CREATE ON SCHEMA public FROM streamfilter_owner, streamfilter_deleter;
DROP ROLE streamfilter_owner, streamfilter_deleter;
