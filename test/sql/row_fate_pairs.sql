--
-- Fates of rows together with what else there is: foreign tables, windows, slices, trees, prepared transactions, COPY, MERGE
--
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-9', slices '4');
CREATE FUNCTION known(VARIADIC ids int[]) RETURNS int[] LANGUAGE sql AS
$$SELECT coalesce(array_agg(i ORDER BY i), '{}') FROM unnest(ids) i WHERE streamfilter_test('seen', i)$$;
CREATE FUNCTION drop_odd() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN CASE WHEN NEW.code % 2 = 0 THEN NEW END; END$$;

-- Foreign tables whose server drops the row: alone, as a partition, by INSERT, RETURNING and MERGE
CREATE EXTENSION postgres_fdw;
DO $$BEGIN EXECUTE format('CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L)',
  split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database()); END$$;
CREATE USER MAPPING FOR CURRENT_USER SERVER loop;
CREATE TABLE there (id int, code int);
CREATE TRIGGER t BEFORE INSERT ON there FOR EACH ROW EXECUTE FUNCTION drop_odd();
CREATE FOREIGN TABLE abroad (id int, code int) SERVER loop OPTIONS (table_name 'there');
CREATE TRIGGER zz BEFORE INSERT ON abroad FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO abroad VALUES (1, 1), (1, 2), (2, 3), (1, 4);
INSERT INTO abroad SELECT i, i FROM generate_series(3, 6) i;
INSERT INTO abroad VALUES (7, 7), (7, 8) RETURNING id;
INSERT INTO abroad VALUES (8, 9), (8, 10), (8, 12) ON CONFLICT DO NOTHING;
TABLE there;
SELECT known(1, 2, 3, 4, 5, 6, 7, 8);
CREATE TABLE parted (id int, code int) PARTITION BY RANGE (code);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
ALTER FOREIGN TABLE abroad RENAME TO elsewhere;
DROP TRIGGER zz ON elsewhere;
ALTER TABLE parted ATTACH PARTITION elsewhere FOR VALUES FROM (100) TO (200);
CREATE TRIGGER zz BEFORE INSERT ON parted FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO parted VALUES (11, 101), (11, 1), (12, 103), (12, 102), (13, 105), (13, 104), (13, 3);
SELECT tableoid::regclass, * FROM parted WHERE id > 10 ORDER BY id;
SELECT known(11, 12, 13);
DROP TABLE parted;
DROP TABLE there;
DROP SERVER loop CASCADE;
DROP EXTENSION postgres_fdw;

-- Prepared transactions: what was taken back before stays free, what was stored is remembered.
CREATE TABLE events (id int, code int UNIQUE);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO events VALUES (20, 20);
BEGIN;
INSERT INTO events VALUES (21, 20), (22, 22), (23, 20) ON CONFLICT DO NOTHING;
SAVEPOINT s;
INSERT INTO events VALUES (21, 21), (24, 20), (25, 25) ON CONFLICT DO NOTHING;
ROLLBACK TO s;
INSERT INTO events VALUES (23, 23), (26, 20), (27, 27), (27, 28) ON CONFLICT DO NOTHING;
PREPARE TRANSACTION 'fates';
INSERT INTO events VALUES (21, 31), (24, 34), (26, 36);
COMMIT PREPARED 'fates';
SELECT known(21, 22, 23, 24, 25, 26, 27), ARRAY(SELECT id FROM events WHERE id > 20 ORDER BY id) AS stored;
BEGIN;
INSERT INTO events VALUES (28, 20), (29, 29), (28, 38) ON CONFLICT DO NOTHING;
PREPARE TRANSACTION 'fates';
ROLLBACK PREPARED 'fates';
SELECT known(28, 29);
INSERT INTO events VALUES (28, 38), (29, 39) RETURNING id;

-- COPY that fails, at its end or in its midst, also after rows whose keys went back
CREATE TRIGGER zzz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION drop_odd();
COPY events FROM stdin;
41	41
41	42
42	43
x	44
\.
COPY events FROM stdin;
41	41
41	42
43	42
\.
SELECT known(41, 42, 43);
COPY events FROM stdin;
41	41
41	42
42	43
43	46
\.
SELECT known(41, 42, 43), ARRAY(SELECT id FROM events WHERE id BETWEEN 41 AND 43 ORDER BY id) AS stored;
-- MERGE
MERGE INTO events e USING (VALUES (51, 51), (51, 52), (52, 42), (53, 53)) v (id, code) ON e.code = v.code
  WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.code);
SELECT known(51, 52, 53), ARRAY(SELECT id FROM events WHERE id BETWEEN 51 AND 53) AS stored;
-- modes: shadow remembers what is stored, off nothing
SET streamfilter.mode = 'off';
INSERT INTO events VALUES (54, 54);
SET streamfilter.mode = 'shadow';
INSERT INTO events VALUES (55, 55), (56, 56), (51, 58);
RESET streamfilter.mode;
SELECT known(54, 55, 56), ARRAY(SELECT id FROM events WHERE id BETWEEN 51 AND 56 ORDER BY id) AS stored;
DROP TABLE events;
DROP FOREIGN TABLE seen;
DROP FUNCTION known;

-- Windows by rows: a key that was taken back is free
CREATE FOREIGN TABLE seen_last (id int) SERVER streamfilter OPTIONS (kind 'timer', window '100 rows', memory '64kB');
CREATE TABLE last_rows (id int, code int UNIQUE);
CREATE TRIGGER zz BEFORE INSERT ON last_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_last');
INSERT INTO last_rows VALUES (1, 1), (2, 1), (3, 3), (2, 2), (4, 1) ON CONFLICT DO NOTHING;
INSERT INTO last_rows SELECT 5, 1 FROM generate_series(1, 300) ON CONFLICT DO NOTHING;
INSERT INTO last_rows SELECT i, i FROM generate_series(4, 6) i RETURNING id;
INSERT INTO last_rows SELECT i, i FROM generate_series(1001, 1200) i;
SELECT id, streamfilter_test('seen_last', id) FROM last_rows WHERE id < 10 OR id > 1199 ORDER BY id;
DROP TABLE last_rows;
DROP FOREIGN TABLE seen_last;

-- A tree with slices: taken back in each of its filters, also across savepoints
CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-9', seed '7', slices '2');
CREATE FOREIGN TABLE leaf (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-9', seed '7', slices '2', parent 'root');
CREATE TABLE leaf_rows (id int, code int UNIQUE);
CREATE TRIGGER zz BEFORE INSERT ON leaf_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('leaf');
BEGIN;
INSERT INTO leaf_rows VALUES (1, 1), (2, 1), (3, 3) ON CONFLICT DO NOTHING;
SAVEPOINT s;
INSERT INTO leaf_rows VALUES (2, 2), (4, 1) ON CONFLICT DO NOTHING;
SELECT i, streamfilter_test('leaf', i) AS leaf, streamfilter_test('root', i) AS root FROM generate_series(1, 4) i;
ROLLBACK TO s;
COMMIT;
SELECT i, streamfilter_test('leaf', i) AS leaf, streamfilter_test('root', i) AS root FROM generate_series(1, 4) i;
DROP TABLE leaf_rows;
DROP FOREIGN TABLE leaf, root;
DROP FUNCTION drop_odd;
