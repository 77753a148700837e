--
-- A filter before a unique index: rows that the filter has forgotten are refused without an error
--
CREATE FOREIGN TABLE seen (id bigint) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE events (id int PRIMARY KEY, note text);
INSERT INTO events VALUES (1, 'forgotten'), (2, 'forgotten');
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO events VALUES (1, 'a');
INSERT INTO events VALUES (1, 'b'), (3, 'c'), (3, 'd') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO events VALUES (2, 'e'), (4, 'f') ON CONFLICT (id) DO NOTHING RETURNING *;
INSERT INTO events SELECT i, 'g' FROM generate_series(1, 10) i ON CONFLICT ON CONSTRAINT events_pkey DO NOTHING;
-- What was refused is known now: the index is not asked again.
SELECT streamfilter_test('seen', 1), streamfilter_test('seen', 10);
PREPARE add AS INSERT INTO events VALUES ($1, 'p') ON CONFLICT DO NOTHING RETURNING id;
EXECUTE add(1);
EXECUTE add(11);
-- a repeat is discarded, whatever DO UPDATE says
INSERT INTO events VALUES (1, 'h') ON CONFLICT (id) DO UPDATE SET note = excluded.note;
SELECT note FROM events WHERE id = 1;
-- A rollback forgets the key, not the row that was there.
ALTER TABLE events DISABLE TRIGGER zz;
INSERT INTO events VALUES (20, 'there');
ALTER TABLE events ENABLE TRIGGER zz;
BEGIN;
INSERT INTO events VALUES (20, 'i'), (21, 'i') ON CONFLICT DO NOTHING;
ROLLBACK;
SELECT streamfilter_test('seen', 20), streamfilter_test('seen', 21);
INSERT INTO events VALUES (20, 'j'), (21, 'j') ON CONFLICT DO NOTHING RETURNING id;

-- Indexes that could refuse a row whose key is not there
CREATE FOREIGN TABLE seen_pairs (id int, note text) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_pairs');
INSERT INTO events VALUES (1, 'k'), (30, 'k') ON CONFLICT DO NOTHING;
SELECT streamfilter_test('seen_pairs', 30, 'k');
CREATE UNIQUE INDEX pairs ON events (note, id);
INSERT INTO events VALUES (30, 'k') ON CONFLICT DO NOTHING;
INSERT INTO events VALUES (30, 'k') ON CONFLICT (id, note) DO NOTHING RETURNING *;
INSERT INTO events VALUES (30, 'l') ON CONFLICT (id) DO NOTHING;
-- A conflict target that fits; the primary key is not its business.
ALTER TABLE events DISABLE TRIGGER zz;
INSERT INTO events VALUES (31, 'k');
ALTER TABLE events ENABLE TRIGGER zz;
INSERT INTO events VALUES (31, 'k') ON CONFLICT (id, note) DO NOTHING;
DROP TABLE events;
-- Expressions, conditions, EXCLUDE, other equalities
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE words (word text, n int);
CREATE FOREIGN TABLE seen_words (word text) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TRIGGER zz BEFORE INSERT ON words FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_words');
INSERT INTO words VALUES ('a', 1), ('a', 2) ON CONFLICT DO NOTHING;
CREATE UNIQUE INDEX words_1 ON words (lower(word));
INSERT INTO words VALUES ('b', 1) ON CONFLICT DO NOTHING;
DROP INDEX words_1;
CREATE UNIQUE INDEX words_1 ON words (word) WHERE n > 0;
INSERT INTO words VALUES ('b', 1) ON CONFLICT DO NOTHING;
DROP INDEX words_1;
CREATE UNIQUE INDEX words_1 ON words (word COLLATE nocase);
INSERT INTO words VALUES ('b', 1) ON CONFLICT DO NOTHING;
DROP INDEX words_1;
CREATE UNIQUE INDEX words_1 ON words (word COLLATE "C" text_pattern_ops, n);
INSERT INTO words VALUES ('b', 1), ('a', 1) ON CONFLICT DO NOTHING RETURNING *;
DELETE FROM words WHERE word = 'b';
ALTER TABLE words ADD EXCLUDE (n WITH =);
INSERT INTO words VALUES ('c', 2) ON CONFLICT DO NOTHING;
INSERT INTO words VALUES ('c', 2) ON CONFLICT (word, n) DO NOTHING;
ALTER TABLE words DROP CONSTRAINT words_n_excl;
ALTER TABLE words ALTER word TYPE varchar(20);
INSERT INTO words VALUES ('d', 3) ON CONFLICT DO NOTHING RETURNING *;
-- A cast that makes two of one
CREATE FOREIGN TABLE seen_stamps (at timestamp) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE days (at date PRIMARY KEY);
CREATE TRIGGER zz BEFORE INSERT ON days FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_stamps');
INSERT INTO days VALUES ('2026-01-01') ON CONFLICT DO NOTHING;
DROP TABLE days, words;
DROP FOREIGN TABLE seen_stamps, seen_words, seen_pairs;
DROP COLLATION nocase;

-- Partitioned tables, where an index has the partition key, too
CREATE TABLE parted (at date, id int, note text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE parted_2 (note text, id int NOT NULL, at date NOT NULL);
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
INSERT INTO parted VALUES ('2026-01-01', 101, 'there'), ('2026-02-01', 102, 'there');
CREATE TRIGGER zz BEFORE INSERT ON parted FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO parted SELECT d, 100 + i, 'a' FROM generate_series(1, 3) i, unnest('{2026-01-01,2026-02-01}'::date[]) d ON CONFLICT DO NOTHING;
SELECT * FROM parted ORDER BY at, id;
CREATE UNIQUE INDEX ON parted_2 (note);
INSERT INTO parted VALUES ('2026-01-01', 111, 'b') ON CONFLICT DO NOTHING;
INSERT INTO parted VALUES ('2026-02-01', 112, 'b') ON CONFLICT DO NOTHING;
DROP TABLE parted;

-- Repeats that are diverted or marked
CREATE TABLE events (id int UNIQUE, note text, repeated boolean);
CREATE TABLE repeats (LIKE events);
INSERT INTO events VALUES (201, 'there');
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
INSERT INTO events VALUES (201, 'a'), (202, 'b'), (202, 'c') ON CONFLICT DO NOTHING;
INSERT INTO events VALUES (201, 'd') ON CONFLICT DO NOTHING;
SELECT id, note FROM repeats ORDER BY note;
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen', 'repeated');
INSERT INTO events VALUES (201, 'e'), (203, 'f') ON CONFLICT DO NOTHING RETURNING *;

-- Trigger argument conflicting: COPY and INSERT skip what the index has.
DROP TABLE repeats CASCADE;
CREATE TABLE repeats (LIKE events);
TRUNCATE seen;
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'conflicting=skip');
COPY events (id, note) FROM stdin;
201	copied
301	copied
302	copied
301	copied
202	copied
\.
SELECT id, note FROM events WHERE note = 'copied' ORDER BY id;
INSERT INTO events SELECT i, 'many' FROM generate_series(190, 310) i;
SELECT count(*), count(DISTINCT id) FROM events;
TRUNCATE seen;
INSERT INTO events SELECT i, 'more' FROM generate_series(190, 320) i;
INSERT INTO events VALUES (190, 'one'), (321, 'one') RETURNING id;
SELECT count(*), count(DISTINCT id) FROM events;
SELECT rows, discarded FROM streamfilter_triggers WHERE "table" = 'events'::regclass;
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats', 'id', 'conflicting', 'skip');
TRUNCATE seen;
INSERT INTO events VALUES (190, 'diverted'), (322, 'new'), (322, 'again');
SELECT id, note FROM repeats ORDER BY id;
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen', 'repeated', $$conflicting 'skip'$$);
TRUNCATE seen;
INSERT INTO events VALUES (190, 'marked'), (323, 'new'), (322, 'marked'), (323, 'marked') RETURNING *;
INSERT INTO events VALUES (190, 'marked');
SET streamfilter.mode = 'shadow';
INSERT INTO events VALUES (190, 'shadow'), (324, 'shadow') RETURNING id;
RESET streamfilter.mode;
-- Two rows of a key in one batch, which both pass
TRUNCATE events, seen;
INSERT INTO events SELECT i % 3, 'marked' FROM generate_series(1, 9) i;
COPY events (id, note) FROM stdin;
7	copied
8	copied
7	copied
8	copied
\.
SET streamfilter.mode = 'shadow';
INSERT INTO events SELECT i % 3 + 10, 'shadow' FROM generate_series(1, 9) i;
RESET streamfilter.mode;
SELECT id, note, repeated FROM events ORDER BY id;
-- Not by an index on a generated column: the trigger cannot know that.
CREATE TABLE computed (id int, half int GENERATED ALWAYS AS (nullif(id / 2, 3)) STORED, UNIQUE NULLS NOT DISTINCT (id, half));
INSERT INTO computed VALUES (6), (30);
CREATE TRIGGER zz BEFORE INSERT ON computed FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'conflicting=skip');
CREATE TRIGGER zz BEFORE INSERT ON computed FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO computed VALUES (30);
INSERT INTO computed SELECT generate_series(30, 31) ON CONFLICT DO NOTHING;
TABLE computed;
DROP TABLE computed;
-- Constraints that are checked later, EXCLUDE, indexes with a condition or an expression
CREATE TABLE later (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, n int);
INSERT INTO later VALUES (20, 0);
CREATE TRIGGER zz BEFORE INSERT ON later FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'conflicting=skip');
INSERT INTO later SELECT i, 1 FROM generate_series(20, 22) i;
INSERT INTO later VALUES (20, 2), (23, 2);
INSERT INTO later VALUES (24, 3) ON CONFLICT DO NOTHING;
SELECT * FROM later ORDER BY id;
ALTER TABLE later DROP CONSTRAINT later_id_key;
CREATE UNIQUE INDEX ON later (id) WHERE n < 9;
CREATE UNIQUE INDEX ON later ((id + 100));
ALTER TABLE later ADD EXCLUDE (id WITH =);
TRUNCATE seen;
INSERT INTO later VALUES (20, 9);
SELECT streamfilter_test('seen', 20);
DROP TABLE later;
-- A name that is no column is a mistake, as ever.
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'conflicting=stop');
DROP TABLE events, repeats;
DROP FOREIGN TABLE seen;

-- In batches as row by row: the table, and how many rows the statement says that it has inserted
CREATE FOREIGN TABLE forgetful (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '4kB', seed '1');
CREATE TABLE many (id int, part int, note text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE many_0 PARTITION OF many FOR VALUES IN (0);
CREATE TABLE many_1 (note text, part int NOT NULL, id int NOT NULL);
ALTER TABLE many ATTACH PARTITION many_1 FOR VALUES IN (1);
CREATE TABLE whole (id int PRIMARY KEY, part int, note text);
CREATE TRIGGER zz BEFORE INSERT ON many FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('forgetful');
CREATE TRIGGER zz BEFORE INSERT ON whole FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('forgetful');
SET streamfilter.batch_insert = on;
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO whole SELECT i, 0, 'a' FROM generate_series(1, 10) i ON CONFLICT DO NOTHING;
CREATE PROCEDURE insert_many(target regclass, batches bool) LANGUAGE plpgsql AS $$
DECLARE inserted bigint; kept bigint;
BEGIN
  PERFORM set_config('streamfilter.batch_insert', batches::text, true);
  EXECUTE 'TRUNCATE forgetful, ' || target;
  EXECUTE format('INSERT INTO %s VALUES (7, 1, $1)', target) USING 'there';
  DELETE FROM forgetful WHERE id = 7;
  EXECUTE format('INSERT INTO %s (id, part, note) SELECT i %% 3000, i %% 3000 %% 2, i FROM generate_series(1, 9000) i ON CONFLICT DO NOTHING',
    target);
  GET DIAGNOSTICS inserted = ROW_COUNT;
  EXECUTE format('SELECT count(*) FROM %s', target) INTO kept;
  RAISE NOTICE '%: % inserted, % there', target, inserted, kept;
END$$;
CALL insert_many('whole', true);
CALL insert_many('whole', false);
CALL insert_many('many', true);
CALL insert_many('many', false);
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE note = 'there') FROM many;
-- A repeatable read, an index that does not go with the filter, an error
BEGIN ISOLATION LEVEL REPEATABLE READ;
EXPLAIN (VERBOSE, COSTS OFF)
INSERT INTO whole SELECT i, 0, 'b' FROM generate_series(2999, 3001) i ON CONFLICT DO NOTHING;
ROLLBACK;
CREATE UNIQUE INDEX whole_note ON whole (note, part);
INSERT INTO whole SELECT i, 0, 'c' FROM generate_series(4001, 4003) i ON CONFLICT DO NOTHING;
SELECT count(*) FROM generate_series(4001, 4003) i WHERE streamfilter_test('forgetful', i);
INSERT INTO whole SELECT i, 0, 'c' FROM generate_series(4001, 4003) i ON CONFLICT (id) DO NOTHING;
INSERT INTO whole SELECT i, 0, 'd' || i FROM generate_series(3990, 4010) i ON CONFLICT (id) DO NOTHING;
SELECT count(*), min(id), max(id) FROM whole WHERE note = 'c' OR note LIKE 'd%';
RESET streamfilter.batch_insert;
DROP PROCEDURE insert_many;
DROP TABLE many, whole;
DROP FOREIGN TABLE forgetful;
