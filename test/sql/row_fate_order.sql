--
-- The order that src/pg/trigger/row_fate.hpp builds on is a habit of the executor, not a contract: the memory of a row is freed after its fate
-- is known and before the next row is judged. Each way by which rows come must keep it, in every version of the server. Of the same key
-- one row is refused, then one is stored: in any other order the second is lost, or the key of the first stays.
--
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-9');
CREATE TABLE events (id int, code int, n int, note text) PARTITION BY LIST (code);
CREATE TABLE events_all PARTITION OF events DEFAULT;
CREATE UNIQUE INDEX ON events_all (code);
CREATE TABLE plain (id int, code int UNIQUE, n int, note text);
CREATE TABLE sources (n serial, id int, code int);
INSERT INTO sources (id, code) VALUES (1, 100), (1, 1), (2, 1), (2, 2), (3, 100), (2, 3);
CREATE FUNCTION drop_hundred() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN CASE WHEN NEW.code < 100 AND NOT EXISTS (SELECT FROM plain WHERE code = NEW.code) AND NOT EXISTS (SELECT FROM events WHERE code = NEW.code) THEN NEW END; END$$;
CREATE PROCEDURE try(statement text, later bool) LANGUAGE plpgsql AS $$
DECLARE wrong text; target text;
BEGIN
  FOREACH target IN ARRAY '{plain,events}'::text[] LOOP
    TRUNCATE plain, events, seen;
    EXECUTE format('INSERT INTO %I VALUES (0, 100)', target);
    EXECUTE format('CREATE TRIGGER b BEFORE INSERT ON %I FOR EACH ROW EXECUTE FUNCTION streamfilter_discard(''seen'')', target);
    IF later THEN EXECUTE format('CREATE TRIGGER c BEFORE INSERT ON %I FOR EACH ROW EXECUTE FUNCTION drop_hundred()', target); END IF;
    EXECUTE replace(statement, 'target', target);
    SELECT concat_ws(', ', CASE WHEN stored <> '{1,2}' THEN 'stored ' || stored::text END, CASE WHEN known <> '{1,2}' THEN 'remembered ' || known::text END) INTO wrong
    FROM (SELECT ARRAY(SELECT id FROM plain WHERE id > 0 UNION ALL SELECT id FROM events WHERE id > 0 ORDER BY id) AS stored,
      ARRAY(SELECT i FROM generate_series(1, 3) i WHERE streamfilter_test('seen', i)) AS known) s;
    IF wrong <> '' THEN
      RAISE EXCEPTION 'PostgreSQL % executes in another order than src/pg/trigger/row_fate.hpp says: %, by %', current_setting('server_version'), wrong, replace(statement, 'target', target);
    END IF;
    EXECUTE format('DROP TRIGGER b ON %I', target);
    EXECUTE format('DROP TRIGGER IF EXISTS c ON %I', target);
  END LOOP;
END$$;
SET client_min_messages = warning;
-- Indexes that refuse
CALL try('INSERT INTO target VALUES (1, 100), (1, 1), (2, 1), (2, 2), (3, 100), (2, 3) ON CONFLICT DO NOTHING', false);
CALL try('INSERT INTO target SELECT id, code FROM sources ORDER BY n ON CONFLICT DO NOTHING', false);
CALL try('WITH i AS (INSERT INTO target SELECT id, code FROM sources ORDER BY n ON CONFLICT DO NOTHING) SELECT 1', false);
CALL try('WITH i AS (INSERT INTO target SELECT id, code FROM sources ORDER BY n ON CONFLICT DO NOTHING RETURNING id) SELECT id FROM i LIMIT 1', false);
CALL try('DO $d$DECLARE r record; BEGIN FOR r IN INSERT INTO target SELECT id, code FROM sources ORDER BY n ON CONFLICT DO NOTHING RETURNING id LOOP END LOOP; END$d$', false);
-- Triggers that drop
CALL try('INSERT INTO target VALUES (1, 100), (1, 1), (2, 1), (2, 2), (3, 100), (2, 3)', true);
CALL try('INSERT INTO target SELECT id, code FROM sources ORDER BY n', true);
CALL try('INSERT INTO target SELECT id, code FROM sources ORDER BY n ON CONFLICT DO NOTHING', true);
CALL try($$COPY target (id, code) FROM PROGRAM 'printf "1\t100\n1\t1\n2\t1\n2\t2\n3\t100\n2\t3\n"'$$, true);
CALL try('MERGE INTO target t USING (SELECT * FROM sources ORDER BY n) s ON false WHEN NOT MATCHED THEN INSERT (id, code) VALUES (s.id, s.code)', true);
CALL try('WITH i AS (INSERT INTO target SELECT id, code FROM sources ORDER BY n) SELECT 1', true);
-- DO UPDATE: a row that its WHERE refuses
CREATE UNIQUE INDEX ON events (code);
CALL try('INSERT INTO target SELECT id, CASE n WHEN 3 THEN 100 ELSE code END FROM sources ORDER BY n ON CONFLICT (code) DO UPDATE SET note = ''x'' WHERE false', false);
DROP TABLE plain, events, sources;
DROP FOREIGN TABLE seen;
DROP PROCEDURE try;
DROP FUNCTION drop_hundred;
