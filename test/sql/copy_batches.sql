-- COPY into a table with one of our triggers: in batches, and nothing else can tell.
CREATE SCHEMA copies;
SET search_path = copies, public;
SET streamfilter.batch_insert = on;
CREATE FOREIGN TABLE seen (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE t (k int, x text CHECK (x <> 'bad'), n serial, CONSTRAINT once UNIQUE (x));
CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');

-- Rows keep their order, the tag counts what was inserted, and so does the progress view.
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_stat_clear_snapshot();
  RAISE NOTICE '% %: %', TG_WHEN, TG_OP, (SELECT format('%s rows, %s excluded', tuples_processed, tuples_excluded) FROM pg_stat_progress_copy);
  RETURN NULL;
END $$;
CREATE TRIGGER before BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION tell();
CREATE TRIGGER after AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION tell();
COPY t (k, x) FROM stdin WHERE k < 100;
1	a
200	b
1	c
2	d
300	e
2	f
3	g
\.
SELECT k, x FROM t ORDER BY ctid;
SELECT rows, discarded FROM streamfilter_triggers WHERE "table" = 't'::regclass;
DROP TRIGGER before ON t;
DROP TRIGGER after ON t;

-- Errors name the line, whenever they are found.
COPY t (k, x) FROM stdin;
10	h
11	i
1	bad
12	bad
13	j
\.
COPY t (k, x) FROM stdin;
10	h
1	a
11	g
13	j
\.
COPY t (k, x) FROM PROGRAM $$echo 10,h; echo 11,a; for i in 1 2 3; do yes 1,h | head -3000; done$$ (FORMAT csv);
COPY t (k, x) FROM stdin (FORMAT csv, HEADER);
k,x
10,h
none,i
\.
COPY t (k, x) FROM stdin;
10	h
11
\.
SELECT count(*) FROM t;
SELECT streamfilter_test('seen', 10);
-- So do those of rows that no page can hold. Larger ones that can be made smaller stay in their order.
DO $$ BEGIN
  EXECUTE 'CREATE TABLE wide (k int, x text' || (SELECT string_agg(', c' || i || ' float8', '') FROM generate_series(1, 1100) AS i) || ')';
END $$;
CREATE FOREIGN TABLE seen_wide (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TRIGGER zz BEFORE INSERT ON wide FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_wide');
COPY wide FROM PROGRAM $$(seq 701 703; echo 704 short 1; seq 705 1200) | awk '{ printf "%s,%s", $1, $2; for (i = 0; i < 1100; i++) printf ",%s", $3; print "" }'$$ (FORMAT csv);
COPY wide FROM PROGRAM $$seq 701 1200 | awk '{ printf "%s,", $1; if ($1 % 50 < 3) for (i = 0; i < 9000; i++) printf "x"; for (i = 0; i < 1100; i++) printf ","; print "" }'$$ (FORMAT csv);
SELECT count(*), sum(length(x)), count(*) FILTER (WHERE k < before) AS out_of_order FROM (SELECT k, x, lag(k) OVER (ORDER BY ctid) AS before FROM wide) AS w;
DROP TABLE wide;
DROP FOREIGN TABLE seen_wide;

-- Numbers of a sequence are taken as rows are read: an error may come later than its row.
CREATE FUNCTION numbers_of_error(batches text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('streamfilter.batch_insert', batches, true), setval('t_n_seq', 1000);
  BEGIN
    COPY t (k, x) FROM PROGRAM $p$echo 20,good; for i in 21 22 23 24 25; do echo $i,bad; done$p$ (FORMAT csv);
  EXCEPTION WHEN check_violation THEN NULL;
  END;
  RETURN nextval('t_n_seq') - 1000;
END $$;
SELECT numbers_of_error('off'), numbers_of_error('on');

-- What follows the end of the data is not read.
COPY t (k, x) FROM PROGRAM $$printf '30\tl\n31\tm\n\\.\n32\tn\n'$$;
-- Neither is a line end needed.
COPY t (k, x) FROM PROGRAM $$printf '33\to\n34\tp'$$;
SELECT k, x FROM t WHERE k >= 30 ORDER BY ctid;

-- Text of another encoding.
CREATE TABLE texts (k int, x text);
CREATE TRIGGER zz BEFORE INSERT ON texts FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
COPY texts FROM PROGRAM $$for i in 40 40 41 42; do printf '%s\t\344\n' $i; done$$ (ENCODING 'latin1');
SELECT k, x = U&'\00e4' AS right FROM texts ORDER BY ctid;

-- Triggers see the depth that they always see; what they COPY themselves goes the same way.
CREATE TABLE copies (LIKE texts);
CREATE FOREIGN TABLE seen_copies (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TRIGGER zz BEFORE INSERT ON copies FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_copies');
CREATE FUNCTION copy_on() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
BEGIN
  EXECUTE format('COPY copies FROM PROGRAM ''for i in 1 2 2 3; do echo "%s$i,copy"; done'' (FORMAT csv)', NEW.k);
  GET DIAGNOSTICS n = ROW_COUNT;
  RAISE NOTICE 'row % at depth %: % rows copied', NEW.k, pg_trigger_depth(), n;
  RETURN NULL;
END $$;
CREATE TRIGGER copy_on AFTER INSERT ON texts FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION copy_on();
COPY texts FROM stdin;
50	a
50	b
51	c
52	d
\.
SELECT count(*), count(DISTINCT k) FROM copies;

-- Partitions; one needs each row.
CREATE TABLE parts (k int, repeat boolean, x text) PARTITION BY LIST (x);
CREATE TABLE part_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE part_b (x text, gone int, repeat boolean, k int);
ALTER TABLE part_b DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION part_b FOR VALUES IN ('b');
CREATE TRIGGER zz BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen', 'repeat');
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'row %: % before it, depth %', NEW.k, (SELECT count(*) FROM parts), pg_trigger_depth();
  RETURN NEW;
END $$;
CREATE TRIGGER look BEFORE INSERT ON part_b FOR EACH ROW EXECUTE FUNCTION look();
COPY parts (k, x) FROM stdin;
60	a
61	b
60	a
60	b
62	a
63	c
\.
COPY parts (k, x) FROM stdin;
60	a
61	b
60	a
60	b
62	a
\.
SELECT tableoid::regclass, k, repeat FROM parts ORDER BY tableoid::regclass::text, ctid;

-- What would see that rows come late gets them in time, also where no expression calls it.
CREATE FUNCTION is_known() RETURNS boolean STABLE LANGUAGE sql AS $$SELECT streamfilter_test('copies.seen', 91)$$;
CREATE TABLE told (k int, x text, known boolean DEFAULT is_known());
CREATE TRIGGER zz BEFORE INSERT ON told FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
COPY told (k, x) FROM stdin;
90	a
91	b
92	c
\.
SELECT * FROM told ORDER BY ctid;
CREATE FOREIGN TABLE seen_k (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-9');
CREATE FUNCTION follows(k int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN streamfilter_test('copies.seen_k', k + 1); END$$;
CREATE TABLE computed (k int, known boolean GENERATED ALWAYS AS (follows(k)) STORED);
CREATE TABLE indexed (k int);
CREATE INDEX ON indexed (follows(k));
CREATE TABLE partly (k int);
CREATE INDEX ON partly (k) WHERE follows(k);
CREATE TRIGGER zz BEFORE INSERT ON computed FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_k');
CREATE TRIGGER zz BEFORE INSERT ON indexed FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_k');
CREATE TRIGGER zz BEFORE INSERT ON partly FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_k');
COPY computed (k) FROM PROGRAM 'seq 110 112';
COPY indexed (k) FROM PROGRAM 'seq 120 122';
COPY partly (k) FROM PROGRAM 'seq 130 132';
SELECT * FROM computed ORDER BY k;
SET enable_seqscan = off;
SELECT k FROM indexed WHERE follows(k);
SELECT k FROM partly WHERE follows(k);
RESET enable_seqscan;
EXPLAIN (VERBOSE, COSTS off) INSERT INTO partly SELECT i FROM generate_series(140, 142) i;
-- A program may write on after the mark of the end, and fail for it.
CREATE TABLE written (k int, x text);
CREATE TRIGGER zz BEFORE INSERT ON written FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_k');
COPY written FROM PROGRAM $$printf '150\ta\n151\tb\n\\.\n'; seq 1000000 || exit 7$$;
COPY written FROM PROGRAM $$printf '152\ta\n153\tb\n\\.\n'; exec seq 1000000$$;
SELECT * FROM written ORDER BY k;
CREATE TABLE late (k int, x text);
CREATE TRIGGER zz BEFORE INSERT ON late FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
CREATE FUNCTION copied_rows() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM copies.late';
CREATE DOMAIN fifth AS int CHECK (copied_rows() < 4);
CREATE TYPE holder AS (a fifth);
COPY late FROM PROGRAM 'seq 10001 10009 | sed "s/$/\t1/"' WHERE x::fifth = 1;
CREATE TRIGGER after AFTER INSERT ON late FOR EACH ROW WHEN (copied_rows() < 3) EXECUTE FUNCTION tell();
COPY late FROM PROGRAM 'seq 10001 10009 | sed "s/$/\t1/"';
DROP TRIGGER after ON late;
TRUNCATE late;
ALTER TABLE late ADD y holder[];
COPY late FROM PROGRAM 'seq 10011 10019 | sed "s/$/\t1\t{(1)}/"';

-- Who may insert, may.
CREATE ROLE copier;
GRANT USAGE ON SCHEMA copies TO copier;
GRANT INSERT (k) ON copies TO copier;
GRANT pg_read_server_files TO copier;
SET ROLE copier;
COPY copies (k) FROM stdin;
70
70
71
\.
COPY copies FROM '/dev/null';
RESET ROLE;

-- More rows than a batch has.
DROP TRIGGER copy_on ON texts;
COPY texts (k) FROM PROGRAM 'seq 1000 5999; seq 3000 6999' WHERE k % 2 = 0;
SELECT count(*), min(k), max(k) FROM texts WHERE k >= 1000;

SET client_min_messages = warning;
-- Values stay until their batch is judged, also where WHERE drops most rows in between, or they are long.
CREATE TABLE held (k int, x text);
CREATE FOREIGN TABLE seen_held (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TRIGGER zz BEFORE INSERT ON held FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_held');
COPY held FROM PROGRAM $$seq 1 40000 | awk '{ print $1 % 5000 "," $1 " is the number of this row" }'$$ (FORMAT csv) WHERE k % 500 = 0;
SELECT k, x FROM held ORDER BY ctid;
COPY held FROM PROGRAM $$seq 1 3000 | awk '{ printf "%d,%d ", 10000 + $1 % 2000, $1; for (i = 0; i < $1 % 300; i++) printf "abcdefghij"; print "" }'$$ (FORMAT csv);
SELECT count(*), bool_and(x ~ ('^' || CASE k WHEN 10000 THEN 2000 ELSE k - 10000 END || ' ')), sum(length(x)) FROM held WHERE k >= 10000;
COPY (SELECT k % 700 + 20000, x FROM held WHERE k >= 10000 ORDER BY ctid) TO PROGRAM 'cat > streamfilter_held' (FORMAT binary);
COPY held FROM PROGRAM 'cat streamfilter_held; rm streamfilter_held' (FORMAT binary);
SELECT count(*), sum(length(x)), min(split_part(x, ' ', 1)::int), max(split_part(x, ' ', 1)::int) FROM held WHERE k >= 20000;
DROP SCHEMA copies CASCADE;
DROP ROLE copier;

-- ---- the command that rows are of ----------------------------------------------------------------

-- Statements of a trigger before the statement do not count.
CREATE TABLE stamped (id int, n int);
CREATE TABLE stamped_log (id int);
CREATE FOREIGN TABLE seen_stamped (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FUNCTION log_stamped() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO stamped_log VALUES (1); INSERT INTO stamped_log VALUES (2); RETURN NULL; END';
CREATE TRIGGER before_all BEFORE INSERT ON stamped FOR EACH STATEMENT EXECUTE FUNCTION log_stamped();
CREATE TRIGGER zz BEFORE INSERT ON stamped FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_stamped');
COPY stamped FROM STDIN;
1	1
2	1
1	2
3	1
\.
SELECT count(*), count(DISTINCT cmin::text) AS commands, min(cmin::text) AS command FROM stamped;
DROP TABLE stamped, stamped_log;
DROP FUNCTION log_stamped;
DROP FOREIGN TABLE seen_stamped;

-- Repeats are diverted in batches, too, and errors there name the line.
CREATE FOREIGN TABLE seen_diverted (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE source (k int, x text);
CREATE TABLE repeats (x text CHECK (x <> 'bad'), k bigint, filter regclass);
CREATE TRIGGER zz BEFORE INSERT ON source FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_diverted', 'repeats');
COPY source FROM stdin;
1	a
1	b
2	c
1	bad
3	d
\.
CREATE UNIQUE INDEX ON repeats (x);
COPY source FROM stdin;
1	a
1	b
2	c
1	b
3	d
\.
DROP INDEX repeats_x_idx;
-- A page cannot hold the row, nor can it be made smaller.
ALTER TABLE repeats ADD filler char(9000) DEFAULT repeat('x', 9000), ALTER filler SET STORAGE PLAIN;
COPY source FROM stdin;
1	a
2	c
1	b
2	d
\.
ALTER TABLE repeats DROP filler, ADD diverted_at timestamptz;
COPY source FROM PROGRAM $$yes 1 | head -3000 | awk '{ print NR % 1000 "\t" NR }'$$;
SELECT count(*), min(x::int), max(x::int), count(diverted_at), min(filter::text) FROM repeats;
BEGIN;
COPY source FROM stdin;
1001	a
1001	b
1001	c
\.
SAVEPOINT s;
COPY source FROM stdin;
1001	d
1002	e
1002	f
\.
ROLLBACK TO s;
SELECT x, diverted_at = now() AS now FROM repeats WHERE k > 1000;
SELECT count(*), count(DISTINCT cmin::text) AS commands FROM repeats WHERE k > 1000;
COMMIT;
DROP TABLE source, repeats;
DROP FOREIGN TABLE seen_diverted;
