--
-- streamfilter_forget and INSERT in one statement: keys are forgotten before rows are judged, or the statement fails. This rests on what the
-- executor of each server version does: when triggers fire, and which part of a statement runs first.
--
\set VERBOSITY terse
CREATE FUNCTION make(name text, columns text, trigger text DEFAULT 'TRIGGER') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I %s', name, columns);
  EXECUTE format($q$CREATE FOREIGN TABLE seen_%s (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB')$q$, name);
  EXECUTE format($q$CREATE TRIGGER zz BEFORE INSERT ON %I FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_%1$s')$q$, name);
  EXECUTE format($q$CREATE %s follow AFTER DELETE OR UPDATE ON %I %s FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen_%2$s')$q$, trigger, name,
    CASE trigger WHEN 'TRIGGER' THEN '' ELSE 'DEFERRABLE INITIALLY DEFERRED' END);
END $$;
-- The rows, and whether the filter knows just their keys.
CREATE FUNCTION state_of(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text; ids int[]; known int[];
BEGIN
  EXECUTE format('SELECT string_agg(id || v, $q$ $q$ ORDER BY id, v), array_agg(id ORDER BY id) FROM %I', name) INTO result, ids;
  known := array(SELECT i FROM generate_series(-20, 300) i WHERE streamfilter_test(('seen_' || name)::regclass, i));
  RETURN coalesce(result, 'nothing') || CASE WHEN known IS DISTINCT FROM coalesce(ids, '{}') THEN ', but the filter knows ' || known::text ELSE '' END;
END $$;

SELECT FROM make('t', '(id int, v text)');
INSERT INTO t SELECT i, 'o' FROM generate_series(1, 5) i;
-- A part of WITH that the INSERT reads, and one that nobody reads, which the executor would run last.
WITH d AS (DELETE FROM t WHERE id = 1 RETURNING id) INSERT INTO t SELECT id, 'n' FROM d;
WITH d AS (DELETE FROM t WHERE id = 2) INSERT INTO t VALUES (2, 'n');
WITH u AS (UPDATE t SET id = 103 WHERE id = 3) INSERT INTO t VALUES (3, 'n') RETURNING id;
WITH d AS (DELETE FROM t WHERE id = 4 RETURNING id), i AS (INSERT INTO t SELECT id, 'n' FROM d) SELECT count(*) FROM d;
SELECT state_of('t');
-- A part that is read in part.
WITH d AS (DELETE FROM t WHERE id < 5 RETURNING id) INSERT INTO t SELECT id, 'm' FROM d LIMIT 2;
SELECT count(*), bool_and(streamfilter_test('seen_t', id)) FROM t WHERE id < 5;
DELETE FROM t WHERE id < 5;
INSERT INTO t SELECT i, 'o' FROM generate_series(1, 4) i;
SELECT state_of('t');
-- MERGE that deletes first.
MERGE INTO t USING (VALUES (1, true), (1, false)) s (id, gone) ON t.id = s.id AND s.gone
  WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'n');
SELECT state_of('t');
-- A BEFORE trigger that keeps the row keeps its key, though its name sorts later.
CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN CASE WHEN OLD.id = 5 THEN NULL ELSE OLD END; END$$;
CREATE TRIGGER zzz BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION keeps();
DELETE FROM t WHERE id IN (4, 5);
SELECT state_of('t');
DROP TRIGGER zzz ON t;
-- One that changes the key of an UPDATE.
CREATE FUNCTION changes() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.id := NEW.id + 100; RETURN NEW; END$$;
CREATE TRIGGER zzz BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION changes();
UPDATE t SET id = 6 WHERE id = 5;
SELECT state_of('t');
DROP TRIGGER zzz ON t;
-- A cursor's row.
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t WHERE id = 1 FOR UPDATE;
FETCH c;
DELETE FROM t WHERE CURRENT OF c;
INSERT INTO t VALUES (1, 'c');
COMMIT;
-- What rolls back is not forgotten.
BEGIN; SAVEPOINT a;
WITH d AS (DELETE FROM t RETURNING id) INSERT INTO t SELECT id, 'r' FROM d;
ROLLBACK TO a; COMMIT;
SELECT state_of('t');

-- ---- partitions: a row that moves fires for UPDATE, and then for DELETE --------

SELECT FROM make('parts', '(id int, v text, d int) PARTITION BY LIST (d)');
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 (junk int, d int, v text, id int);
ALTER TABLE parts_2 DROP junk;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2);
INSERT INTO parts SELECT i, 'o', 1 FROM generate_series(1, 6) i;
UPDATE parts SET d = 2 WHERE id = 1;
UPDATE parts SET d = 2, id = 102 WHERE id = 2;
MERGE INTO parts p USING (VALUES (3)) s (id) ON p.id = s.id WHEN MATCHED THEN UPDATE SET d = 2, id = 103;
WITH u AS (UPDATE parts SET d = 2, id = 104 WHERE id = 4) INSERT INTO parts VALUES (4, 'n', 1), (104, 'n', 1);
WITH d AS (DELETE FROM parts WHERE id = 5 RETURNING *) INSERT INTO parts SELECT id, 'n', 2 FROM d;
SELECT state_of('parts');
UPDATE parts SET d = 3 - d, id = 210 - id WHERE id > 100;
SELECT state_of('parts');

-- ---- a deferred trigger; generated columns --------

SELECT FROM make('deferred', '(id int, v text)', 'CONSTRAINT TRIGGER');
INSERT INTO deferred VALUES (1, 'o'), (2, 'o');
BEGIN;
DELETE FROM deferred WHERE id = 1;
INSERT INTO deferred VALUES (1, 'n');
WITH d AS (DELETE FROM deferred WHERE id = 2) INSERT INTO deferred VALUES (2, 'n');
COMMIT;
SELECT state_of('deferred');
SELECT FROM make('generated', '(id int, v text, g int GENERATED ALWAYS AS (id * 2) STORED, d int DEFAULT 1) PARTITION BY LIST (d)');
CREATE TABLE generated_1 PARTITION OF generated FOR VALUES IN (1);
CREATE TABLE generated_2 PARTITION OF generated FOR VALUES IN (2);
INSERT INTO generated VALUES (1, 'o'), (2, 'o'), (3, 'o');
WITH d AS (DELETE FROM generated WHERE id = 1 RETURNING id) INSERT INTO generated SELECT id, 'n' FROM d;
WITH u AS (UPDATE generated SET id = 102 WHERE id = 2) INSERT INTO generated VALUES (2, 'n');
UPDATE generated SET d = 2, id = 103 WHERE id = 3;
SELECT state_of('generated');
SELECT id, g FROM generated ORDER BY id;
-- A generated column of the key, also where the row moves to another partition.
CREATE TABLE doubled (a int, g int GENERATED ALWAYS AS (a * 2) STORED, v text, d int DEFAULT 1) PARTITION BY LIST (d);
CREATE TABLE doubled_1 PARTITION OF doubled FOR VALUES IN (1);
CREATE TABLE doubled_2 PARTITION OF doubled FOR VALUES IN (2);
CREATE FOREIGN TABLE seen_doubled (g int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
CREATE TRIGGER follow AFTER DELETE OR UPDATE ON doubled FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen_doubled');
CREATE TABLE plain (g int, v text);
CREATE TRIGGER zz BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_doubled');
INSERT INTO doubled VALUES (1), (2), (3);
INSERT INTO seen_doubled SELECT g FROM doubled;
UPDATE doubled SET a = 10 WHERE a = 1;
UPDATE doubled SET a = 13, d = 2 WHERE a = 3;
SELECT string_agg(i::text, ' ') AS known FROM generate_series(1, 30) i WHERE streamfilter_test('seen_doubled', i);
WITH d AS (DELETE FROM doubled WHERE a = 2 RETURNING g) INSERT INTO plain SELECT g, 'n' FROM d;
WITH u AS (UPDATE doubled SET a = 4 WHERE a = 13) INSERT INTO plain VALUES (26, 'n'), (8, 'n');
SELECT * FROM plain ORDER BY g;
-- A trigger for DELETE only: a row that moves has not left.
DROP TRIGGER follow ON doubled;
CREATE TRIGGER follow AFTER DELETE ON doubled FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen_doubled');
UPDATE doubled SET d = 1 WHERE a = 4;
MERGE INTO doubled USING (VALUES (10)) s (a) ON doubled.a = s.a WHEN MATCHED THEN UPDATE SET d = 2;
SELECT string_agg(i::text, ' ') AS known FROM generate_series(1, 30) i WHERE streamfilter_test('seen_doubled', i);
-- The condition of a trigger that looks at one.
CREATE TABLE chosen (id int, g int GENERATED ALWAYS AS (id * 2) STORED, v text);
CREATE TRIGGER zz BEFORE INSERT ON chosen FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_doubled', 'id');
CREATE TRIGGER follow AFTER UPDATE ON chosen FOR EACH ROW WHEN (new.g > 420) EXECUTE FUNCTION streamfilter_forget('seen_doubled', 'id');
INSERT INTO chosen VALUES (201), (202);
UPDATE chosen SET id = 211 WHERE id = 201;
UPDATE chosen SET id = 205 WHERE id = 202;
SELECT string_agg(i::text, ' ') AS known FROM generate_series(200, 220) i WHERE streamfilter_test('seen_doubled', i);

-- ---- rows that a trigger puts back --------

CREATE FUNCTION put_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.v <> 'b' THEN EXECUTE format('INSERT INTO %I VALUES ($1, $2)', TG_TABLE_NAME) USING OLD.id, 'b'; END IF;
  RETURN OLD;
END $$;
SELECT FROM make('again', '(id int, v text)');
CREATE TRIGGER again AFTER DELETE ON again FOR EACH ROW EXECUTE FUNCTION put_back();
INSERT INTO again VALUES (1, 'o'), (2, 'o');
DELETE FROM again;
SELECT state_of('again');
-- Before the row has left, its key is there: the statement fails.
SELECT FROM make('too_early', '(id int, v text)');
CREATE TRIGGER again BEFORE DELETE ON too_early FOR EACH ROW EXECUTE FUNCTION put_back();
INSERT INTO too_early VALUES (1, 'o');
DELETE FROM too_early;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT state_of('too_early');

-- ---- foreign keys --------

CREATE TABLE parent (id int PRIMARY KEY);
SELECT FROM make('child', '(id int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, v text)');
INSERT INTO parent SELECT generate_series(1, 4);
INSERT INTO child SELECT i, 'o' FROM generate_series(1, 4) i;
-- The cascade comes at the end of the statement.
WITH g AS (DELETE FROM parent WHERE id = 1 RETURNING id), p AS (INSERT INTO parent VALUES (11)) INSERT INTO child SELECT 1, 'n' FROM g;
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DELETE FROM parent WHERE id = 2;
INSERT INTO parent VALUES (2);
INSERT INTO child VALUES (2, 'n');
UPDATE parent SET id = 13 WHERE id = 3;
SELECT state_of('child');

-- ---- functions --------

CREATE FUNCTION gone(int) RETURNS int LANGUAGE sql AS $$DELETE FROM t WHERE id = $1 RETURNING id$$;
DELETE FROM t;
INSERT INTO t SELECT i, 'o' FROM generate_series(1, 4) i;
-- The row is judged when its function has deleted the other.
INSERT INTO t SELECT gone(1), 'n';
INSERT INTO t VALUES (2, 'n') RETURNING gone(2);
WITH i AS (INSERT INTO t VALUES (3, 'n')) SELECT gone(3);
SELECT state_of('t');
INSERT INTO t SELECT i, 'n' FROM generate_series(1, 3) i WHERE i = 1 OR gone(i - 1) > 0;
SELECT state_of('t');
DO $$
BEGIN
  BEGIN DELETE FROM t WHERE id = 4; RAISE 'undone'; EXCEPTION WHEN raise_exception THEN END;
  INSERT INTO t VALUES (4, 'n');
  DELETE FROM t WHERE id = 4;
  INSERT INTO t VALUES (4, 'm');
END $$;
SELECT state_of('t');
CREATE PROCEDURE swap() LANGUAGE sql AS $$DELETE FROM t WHERE id = 4; INSERT INTO t VALUES (4, 's')$$;
CALL swap();
SELECT state_of('t');

DROP TABLE t, parts, deferred, generated, doubled, plain, chosen, again, too_early, child, parent;
DROP FOREIGN TABLE seen_t, seen_parts, seen_deferred, seen_generated, seen_doubled, seen_again, seen_too_early, seen_child;
DROP FUNCTION make, state_of, keeps, changes, put_back, gone;
DROP PROCEDURE swap;
