--
-- What filters and triggers have done, and what that probably cost
--
SET client_min_messages = error;  -- not of what is counted
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '4kB', k '4', seed '1', slices '2');
CREATE TABLE t (id int, repeat boolean);
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id');
CREATE PROCEDURE feed(first int, last int, step int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN first .. last BY step LOOP
    INSERT INTO t SELECT generate_series(i, i + step - 1);
    COMMIT;
  END LOOP;
END $$;
-- Within four standard deviations.
CREATE FUNCTION is_near(estimate double precision, truth bigint) RETURNS boolean LANGUAGE sql
RETURN abs(estimate - truth) <= 4 * sqrt(truth) + 1;

-- A filter that nobody has used has cost nothing.
SELECT mode, tested, lost_estimate, fill, distinct_estimate, stats_reset FROM streamfilter_stats;
SELECT "table", trigger, filter, kind, rows, discarded, diverted, would_discard, since <= now() AS since
FROM streamfilter_triggers;

-- ---- the estimate --------------------------------------------------------------------------------

-- All keys are new, so all that is discarded is lost: while the filter fills up, and when it is full.
CALL feed(1, 9000, 100);
SELECT accepted + discarded AS rows, discarded > 300 AS loses, is_near(lost_estimate, discarded)
FROM streamfilter_stats;
CALL feed(9001, 10000, 1000);
SELECT accepted + discarded AS rows, is_near(lost_estimate, discarded) FROM streamfilter_stats;
-- One by one.
TRUNCATE seen;
SELECT streamfilter_stats_reset('seen');
SELECT tested, accepted, discarded, lost_estimate, fill, stats_reset <= now() + '1 s' AS reset
FROM streamfilter_stats;
CALL feed(10001, 14000, 1);
SELECT accepted + discarded AS rows, discarded > 10 AS loses, is_near(lost_estimate, discarded)
FROM streamfilter_stats;
-- Repeats are no losses.
SELECT lost_estimate AS before FROM streamfilter_stats \gset
CALL feed(10001, 14000, 500);
SELECT lost_estimate - :before < 1 AS same FROM streamfilter_stats;
-- The keys of one transaction are told apart exactly: it loses by what the filter knew before.
TRUNCATE seen;
SELECT streamfilter_stats_reset('seen');
CALL feed(20001, 24000, 4000);
SELECT accepted, discarded, lost_estimate FROM streamfilter_stats;
-- streamfilter_seen() loses rows likewise.
SELECT streamfilter_stats_reset('seen');
SELECT 10000 - count(*) AS kept FROM generate_series(30001, 40000) i WHERE streamfilter_seen('seen', i) \gset
SELECT accepted = :kept AS accepted, is_near(lost_estimate, 10000 - :kept) FROM streamfilter_stats;
-- What passes is not lost: in shadow, and marked.
SELECT streamfilter_stats_reset('seen');
SET streamfilter.mode = 'shadow';
CALL feed(50001, 54000, 500);
SELECT 4000 - count(*) AS count FROM generate_series(50001, 54000) i WHERE streamfilter_seen('seen', i);
RESET streamfilter.mode;
SELECT discarded, would_discard > 4000 AS would, lost_estimate FROM streamfilter_stats;
DROP TRIGGER zz ON t;
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen', 'repeat', 'id');
CALL feed(60001, 64000, 500);
SELECT discarded > 1000 AS marked, lost_estimate FROM streamfilter_stats;
-- Kinds that find practically nothing by chance.
CREATE FOREIGN TABLE exact (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB');
SELECT 1000 - count(*) AS count FROM generate_series(1, 1000) i WHERE streamfilter_seen('exact', i);
SELECT lost_estimate < 0.001 AS none FROM streamfilter_stats WHERE filter = 'exact'::regclass;

-- ---- triggers ------------------------------------------------------------------------------------

TRUNCATE seen;
SELECT streamfilter_stats_reset('seen');
INSERT INTO t VALUES (1), (1), (2), (NULL);
SELECT trigger, kind, rows, discarded, would_discard FROM streamfilter_triggers;
DROP TRIGGER zz ON t;
CREATE TABLE parts (id int) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (100);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (100) TO (MAXVALUE);
CREATE TRIGGER zz_parts BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO parts VALUES (10), (10), (10), (100), (100);
SET streamfilter.mode = 'shadow';
INSERT INTO parts VALUES (10), (11);
SET streamfilter.mode = 'off';
INSERT INTO parts VALUES (10), (12);
RESET streamfilter.mode;
-- What moves is not judged, what rolls back was; the filter is that of the trigger's origin.
UPDATE parts SET id = 200 WHERE id = 11;
BEGIN; INSERT INTO parts VALUES (10); ROLLBACK;
BEGIN; SAVEPOINT a; INSERT INTO parts VALUES (13); ROLLBACK TO a; INSERT INTO parts VALUES (13); COMMIT;
CREATE VIEW counted AS
SELECT "table", trigger, filter, kind, rows, discarded, would_discard FROM streamfilter_triggers ORDER BY 1, 2;
TABLE counted;
ALTER FOREIGN TABLE seen RENAME TO known;
ALTER TRIGGER zz_parts ON parts RENAME TO zz_once;
TABLE counted;
-- Other filters are left alone.
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('exact', 'id');
INSERT INTO t VALUES (7000), (7000);
SELECT streamfilter_stats_reset('known');
TABLE counted;
SELECT filter, tested FROM streamfilter_stats ORDER BY 1;
SELECT streamfilter_stats_reset();
TABLE counted;
SELECT filter, tested FROM streamfilter_stats ORDER BY 1;
-- A trigger that is made anew counts anew.
INSERT INTO t VALUES (7000), (7001);
DROP TRIGGER zz ON t;
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('exact', 'id');
SELECT rows, discarded FROM streamfilter_triggers WHERE "table" = 't'::regclass;

-- ---- who may -------------------------------------------------------------------------------------

SELECT streamfilter_stats_reset('t');
SELECT streamfilter_stats_reset(0);
SELECT streamfilter_stats_reset(NULL);
CREATE ROLE streamfilter_reader;
SET ROLE streamfilter_reader;
SELECT streamfilter_stats_reset('known');
SELECT streamfilter_stats_reset();
SELECT count(*) FROM streamfilter_triggers;
RESET ROLE;
ALTER FOREIGN TABLE exact OWNER TO streamfilter_reader;
SET ROLE streamfilter_reader;
SELECT streamfilter_stats_reset('exact');
RESET ROLE;

DROP VIEW counted;
DROP TABLE t, parts;
DROP FOREIGN TABLE known, exact;
DROP FUNCTION is_near;
DROP PROCEDURE feed;
DROP ROLE streamfilter_reader;

-- Rows with a NULL in their key, whichever way they come.
CREATE TABLE nulls (a int, b text);
CREATE FOREIGN TABLE seen_nulls (a int, b text) SERVER streamfilter OPTIONS (memory '64kB');
CREATE TRIGGER zz BEFORE INSERT ON nulls FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_nulls');
INSERT INTO nulls VALUES (1, NULL), (NULL, 'x'), (NULL, NULL), (1, 'x'), (1, 'x');
SELECT tested, accepted, discarded, null_keys FROM streamfilter_stats WHERE filter = 'seen_nulls'::regclass;
INSERT INTO nulls SELECT nullif(i % 2, 0), 'y' FROM generate_series(1, 1000) i;
\copy nulls from stdin
\N	z
2	\N
2	z
\.
SELECT tested, accepted, discarded, null_keys FROM streamfilter_stats WHERE filter = 'seen_nulls'::regclass;
INSERT INTO seen_nulls VALUES (NULL, 'x');
INSERT INTO seen_nulls SELECT i, NULL FROM generate_series(1, 10) i;
INSERT INTO seen_nulls VALUES (NULL, 'x'), (NULL, 'y') RETURNING *;
SELECT streamfilter_seen('seen_nulls', NULL, 'x');
SELECT a, b FROM nulls WHERE a IS NULL AND b = 'x' AND NOT streamfilter_seen('seen_nulls', a, b);
SELECT tested, accepted, discarded, null_keys FROM streamfilter_stats WHERE filter = 'seen_nulls'::regclass;
SELECT name, value FROM streamfilter_metrics WHERE labels ->> 'filter' = 'public.seen_nulls' AND name ~ 'null';
-- Not a NULL: they are equal.
ALTER FOREIGN TABLE seen_nulls OPTIONS (ADD nulls 'not distinct');
SELECT streamfilter_stats_reset('seen_nulls');
INSERT INTO nulls VALUES (NULL, NULL), (NULL, NULL);
SELECT tested, accepted, discarded, null_keys FROM streamfilter_stats WHERE filter = 'seen_nulls'::regclass;
DROP TABLE nulls;
DROP FOREIGN TABLE seen_nulls;
