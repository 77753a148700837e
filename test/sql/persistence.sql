-- What is saved of filters, and what is left of it. Restarts are the business of test/t/crash_*.pl, save_*.pl and restore_*.pl.

CREATE VIEW saved AS
SELECT f.filter::regclass::text AS filter,
       (SELECT string_agg(l.change::text, '' ORDER BY l.number) FROM _streamfilter.streamfilter_log l
        WHERE l.filter = f.filter) AS log,
       (SELECT count(*) FROM _streamfilter.streamfilter_image i WHERE i.filter = f.filter AND i.number = 0) AS images
FROM (SELECT filter FROM _streamfilter.streamfilter_log UNION SELECT filter FROM _streamfilter.streamfilter_image) f
ORDER BY 1;

CREATE FOREIGN TABLE kept (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '4kB', k '7');
CREATE FOREIGN TABLE loose (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '4kB', k '7', persistence 'unlogged');
CREATE FOREIGN TABLE wrong (id int) SERVER streamfilter OPTIONS (persistence 'durable');

-- A row of the log for the changes of a transaction that has committed: h is for the header, a for
-- keys, e for erased ones, z for TRUNCATE; u says that an unlogged filter has contents.
TABLE saved;
INSERT INTO kept VALUES (1), (2);
INSERT INTO loose VALUES (1), (2);
TABLE saved;
BEGIN; INSERT INTO kept VALUES (3); ROLLBACK;
BEGIN; SAVEPOINT a; INSERT INTO kept VALUES (4); ROLLBACK TO a; INSERT INTO kept VALUES (5); COMMIT;
INSERT INTO kept VALUES (1);  -- a repeat
TABLE saved;
-- 8 bytes a key
SELECT change, length(data) FROM _streamfilter.streamfilter_log WHERE filter = 'kept'::regclass AND change <> 'h'
ORDER BY number;
BEGIN; INSERT INTO kept VALUES (6); TRUNCATE kept; INSERT INTO kept VALUES (7); COMMIT;
TABLE saved;

-- An image replaces the log; i is for its header.
SELECT streamfilter_save('kept');
TABLE saved;
SELECT filter, last_saved IS NOT NULL AS saved, restored IS NOT NULL AS restored FROM streamfilter_stats ORDER BY filter;
BEGIN; SELECT streamfilter_save('kept'); ROLLBACK;
INSERT INTO kept VALUES (8);
TABLE saved;
SELECT streamfilter_save('loose');
SELECT streamfilter_save();
TABLE saved;
SELECT streamfilter_save('saved');
SELECT streamfilter_save(NULL);
BEGIN READ ONLY; SELECT streamfilter_save('kept'); ROLLBACK;

-- Merged values are in no log: an image is written with the transaction.
CREATE FOREIGN TABLE merged (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '4kB', k '7', seed '0');
BEGIN;
SELECT streamfilter_merge('merged', streamfilter_agg(i, 'bloom(memory=4kB, k=7)'))
FROM generate_series(1, 10) i;
COMMIT;
SELECT * FROM saved WHERE filter = 'merged';
BEGIN;
SELECT streamfilter_merge('merged', streamfilter_add('bloom(memory=4kB, k=7)', 11));
DROP FOREIGN TABLE merged;
COMMIT;

-- Kinds with roles, and kinds that can forget single keys.
CREATE FOREIGN TABLE recent (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '4kB');
CREATE FOREIGN TABLE windowed (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '16kB', window '10 minutes', keys '100', fpr '0.01');
INSERT INTO recent VALUES (1), (2);
DELETE FROM recent WHERE id = 1;
INSERT INTO windowed VALUES (1, '2024-01-01'), (2, '2024-01-02');
SELECT * FROM saved WHERE filter IN ('recent', 'windowed');
SELECT change, length(data) FROM _streamfilter.streamfilter_log
WHERE filter = 'windowed'::regclass AND change = 'r';

-- ALTER: what was added while unlogged is saved when the filter becomes logged.
ALTER FOREIGN TABLE loose OPTIONS (SET persistence 'logged');
SELECT * FROM saved WHERE filter = 'loose';
INSERT INTO loose VALUES (3);
-- When it becomes unlogged, the first change makes what is saved obsolete.
ALTER FOREIGN TABLE loose OPTIONS (SET persistence 'unlogged');
INSERT INTO loose VALUES (4);
SELECT * FROM saved WHERE filter = 'loose';
BEGIN;
ALTER FOREIGN TABLE loose OPTIONS (SET persistence 'logged');
INSERT INTO loose VALUES (5);
ROLLBACK;
INSERT INTO loose VALUES (6);
SELECT * FROM saved WHERE filter = 'loose';
SELECT i, streamfilter_test('loose', i) FROM generate_series(1, 6) i;
-- A definition that the state does not fit: it starts empty, and so does what is saved.
ALTER FOREIGN TABLE recent OPTIONS (SET memory '8kB', ADD entry_bits '32');
INSERT INTO recent VALUES (3);
SELECT * FROM saved WHERE filter = 'recent';
SELECT filter, distinct_estimate FROM streamfilter_stats WHERE filter = 'recent'::regclass;

-- DROP, in all its forms, leaves nothing behind; rolled back, it leaves all.
BEGIN; DROP FOREIGN TABLE kept; TABLE saved; ROLLBACK;
TABLE saved;
DROP FOREIGN TABLE kept;
CREATE ROLE regress_streamfilter_owner;
GRANT USAGE ON FOREIGN SERVER streamfilter TO regress_streamfilter_owner;
CREATE SCHEMA regress_theirs AUTHORIZATION regress_streamfilter_owner;
SET ROLE regress_streamfilter_owner;
CREATE FOREIGN TABLE regress_theirs.mine (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '4kB', k '7');
INSERT INTO regress_theirs.mine VALUES (1);
SELECT streamfilter_save('regress_theirs.mine');
SELECT streamfilter_save();
-- Only the owner may save; nobody but the library writes or, without a right, reads the heaps.
SELECT streamfilter_save('recent');
SELECT * FROM _streamfilter.streamfilter_log;
SELECT * FROM _streamfilter.streamfilter_image;
RESET ROLE;
TABLE saved;
DROP OWNED BY regress_streamfilter_owner;
DROP ROLE regress_streamfilter_owner;
TABLE saved;
BEGIN; CREATE FOREIGN TABLE brief (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '4kB', k '7');
INSERT INTO brief VALUES (1); DROP FOREIGN TABLE brief; COMMIT;
BEGIN; CREATE FOREIGN TABLE brief (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '4kB', k '7');
INSERT INTO brief VALUES (1); ROLLBACK;
TABLE saved;
INSERT INTO _streamfilter.streamfilter_log VALUES (1);
UPDATE _streamfilter.streamfilter_log SET number = 0;
DELETE FROM _streamfilter.streamfilter_image;
TRUNCATE _streamfilter.streamfilter_log;

-- Publications of all tables have nothing to do with them.
SET client_min_messages = error;
CREATE PUBLICATION regress_all FOR ALL TABLES;
RESET client_min_messages;
SELECT tablename FROM pg_publication_tables WHERE pubname = 'regress_all' AND tablename LIKE 'streamfilter%';
DROP PUBLICATION regress_all;

DROP FOREIGN TABLE loose, recent, windowed;
TABLE saved;
DROP VIEW saved;

-- Two in one command: the second one sees what the first has written. An image of an older definition is no damage.
CREATE FOREIGN TABLE twice (k int) SERVER streamfilter OPTIONS (kind 'lru', memory '256kB');
INSERT INTO twice SELECT generate_series(1, 5000);
SELECT streamfilter_save('twice'), streamfilter_save('twice');
SELECT count(DISTINCT saved) AS images FROM _streamfilter.streamfilter_image WHERE filter = 'twice'::regclass;
ALTER FOREIGN TABLE twice OPTIONS (SET memory '32kB', ADD entry_bits '32');
INSERT INTO twice VALUES (1);
SELECT count(*) FROM twice WHERE k = 1;
DROP FOREIGN TABLE twice;
