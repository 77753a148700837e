--
-- What is said of the rows of a statement: streamfilter.report, EXPLAIN ANALYZE.
--
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FOREIGN TABLE "Other" (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE t (id int);
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
CREATE TABLE marked (id int, repeat boolean);
CREATE TRIGGER zz BEFORE INSERT ON marked FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('"Other"', 'repeat', 'id');
INSERT INTO t VALUES (1), (1);
SET streamfilter.report = on;
-- What was before is not meant, and a statement without a repeat says nothing.
INSERT INTO t VALUES (2), (3);
INSERT INTO t VALUES (1), (2), (3), (4), (NULL);
COPY t FROM STDIN;
1
5
\.
-- Others than triggers.
CREATE TABLE staged (id int);
INSERT INTO staged VALUES (1), (6), (6), (NULL);
CREATE TABLE u (id int);
INSERT INTO u SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id);
INSERT INTO seen VALUES (6), (7);
INSERT INTO marked VALUES (1, NULL), (1, NULL), (2, NULL);
SET streamfilter.mode = 'shadow';
INSERT INTO t VALUES (1), (8);
RESET streamfilter.mode;
-- Several filters in one statement; a statement is the one that the client has sent.
WITH a AS (INSERT INTO t VALUES (1), (9) RETURNING id) INSERT INTO marked SELECT id FROM staged;
DO $$ BEGIN FOR i IN 1..3 LOOP INSERT INTO t VALUES (9); END LOOP; END $$;
-- One that fails says nothing, nor does the next one for it. What a savepoint took back was done.
INSERT INTO t SELECT 10 / (11 - i) FROM generate_series(1, 11) i;
INSERT INTO t VALUES (11);
DO $$ BEGIN
  INSERT INTO t VALUES (1);
  BEGIN INSERT INTO t VALUES (1), (1); RAISE 'stop'; EXCEPTION WHEN OTHERS THEN NULL; END;
END $$;
-- In a transaction each statement for itself, COMMIT and ROLLBACK nothing.
BEGIN;
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (1), (12), (12);
COMMIT;
BEGIN;
INSERT INTO t VALUES (13), (13);
ROLLBACK;
SET streamfilter.report = off;
INSERT INTO t VALUES (1);

-- ---- EXPLAIN ANALYZE -----------------------------------------------------------------------------

-- Without times, and what versions of the server say in their own ways.
SET streamfilter.batch_insert = on;
CREATE FUNCTION explain(statement text, options text DEFAULT '') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off ' || options || ') ' || statement LOOP
    IF line !~ 'Buffers|Memory' THEN RETURN NEXT replace(line, '.00 ', ' '); END IF;
  END LOOP;
END $$;
SELECT explain('INSERT INTO t VALUES (1), (1), (20) LIMIT 99');
SELECT explain('INSERT INTO t VALUES (21), (22)');
SELECT explain($$INSERT INTO u SELECT * FROM staged WHERE NOT streamfilter_seen('seen', id)$$);
SELECT explain('INSERT INTO marked SELECT id FROM staged', ', BUFFERS');
SELECT count(*) FROM explain('INSERT INTO t VALUES (1)', ', FORMAT yaml') AS line WHERE line ~ 'judged';
SELECT explain('SELECT 1');
EXPLAIN (COSTS off) INSERT INTO t VALUES (1);
SET streamfilter.report = on;
SELECT explain('INSERT INTO t VALUES (1), (23)');
SET streamfilter.report = off;

DROP TABLE t, u, staged, marked;
DROP FOREIGN TABLE seen, "Other";
RESET streamfilter.batch_insert;
DROP FUNCTION explain;

-- ---- in short, and what everything is ------------------------------------------------------------

CREATE FOREIGN TABLE in_short (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6', memory '64kB');
CREATE TABLE reported (id int);
CREATE TRIGGER zz BEFORE INSERT ON reported FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('in_short');
SET streamfilter.report = on;
INSERT INTO reported VALUES (1), (1);
RESET streamfilter.report;
INSERT INTO reported VALUES (1), (1);
SELECT filter, kind, mode, memory, tested, repeats, fpr_now IS NOT NULL AS has_fpr, state FROM streamfilter_filters
WHERE filter = 'in_short'::regclass;
SELECT max(length(line)) <= 120 AS fits FROM (
  SELECT concat_ws(' | ', rpad(f.filter::text, 24), kind, mode, memory, "full", tested, repeats, fpr_now, state) AS line
  FROM streamfilter_filters f) lines;
DROP TABLE reported;
DROP FOREIGN TABLE in_short;
-- Objects of the extension without a comment, beside parts of aggregates.
SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'streamfilter')
  AND obj_description(objid, classid::regclass::text) IS NULL
  AND NOT (classid = 'pg_proc'::regclass AND objid IN (
    SELECT unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn]::oid[]) FROM pg_aggregate))
  AND NOT (classid = 'pg_type'::regclass AND (SELECT typtype <> 'b' OR typelem <> 0 FROM pg_type t WHERE t.oid = objid))
ORDER BY 1;
SELECT attrelid::regclass, attname FROM pg_attribute
WHERE attrelid IN ('streamfilter_filters'::regclass, 'streamfilter_triggers'::regclass) AND attnum > 0
  AND col_description(attrelid, attnum) IS NULL;
