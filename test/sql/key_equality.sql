--
-- Two keys are the same exactly if SELECT DISTINCT makes one of them
--

-- For every pair of the values: does DISTINCT call them equal, and does a filter that remembers the
-- one contain the other? The answers must agree. (64 hash functions: no false positives here.)
CREATE FUNCTION compare(type text, literals text[],
                        OUT type_name text, OUT pairs bigint, OUT equal bigint, OUT disagreements bigint)
LANGUAGE plpgsql AS $$
BEGIN
  type_name := type;
  EXECUTE format($q$
    WITH v AS (SELECT x::%s AS k FROM unnest($1) AS x)
    SELECT count(*), count(*) FILTER (WHERE one), count(*) FILTER (WHERE one <> same)
    FROM (SELECT streamfilter_add('bloom(memory=4kB, k=64, nulls=''not distinct'')', a.k) @> b.k AS same,
                 (SELECT count(*) = 1 FROM (SELECT DISTINCT k FROM (VALUES (a.k), (b.k)) AS p (k)) AS d)
                   AS one
          FROM v AS a, v AS b) AS answers $q$, type)
  INTO pairs, equal, disagreements USING literals;
END $$;

-- Collations: equal without regard to case, to accents, to neither.
CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION no_accent (provider = icu, locale = 'und-u-kc-ks-level1', deterministic = false);
CREATE COLLATION careful (provider = icu, locale = 'und');
CREATE EXTENSION citext;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a numeric, b text COLLATE no_case);
CREATE DOMAIN small AS int CHECK (VALUE < 100);
CREATE TYPE textrange AS RANGE (subtype = text, collation = no_case);

-- ---- each type for itself -----------------------------------------------------

SELECT c.* FROM (VALUES
  ('bool', '{t,f,true,0}'),
  ('"char"', '{a,A,\\377}'),
  ('int2', '{0,1,-1,32767,-32768}'),
  ('int4', '{0,1,-1,2147483647,-2147483648}'),
  ('int8', '{0,1,-1,4294967296,9223372036854775807,-9223372036854775808}'),
  ('small', '{0,1,1}'),
  ('oid', '{0,1,4294967295}'),
  ('xid8', '{0,1,18446744073709551615}'),
  ('pg_lsn', '{0/0,0/1,1/0}'),
  ('float4', '{0,-0,0.1,1e-45,NaN,-NaN,Infinity,-Infinity}'),
  ('float8', '{0,-0.0,0.1,1e-320,NaN,nan,inf,-inf}'),
  ('numeric', '{0,-0,0.00,1,1.0,-1,-1.000000,100,1e2,10000,0.0001,1.00e-20,0.00000000000000000001,1e200,-1e200,NaN,NaN,inf,-inf}'),
  ('numeric(10,3)', '{1,1.0,1.0004,1.001}'),
  ('text', '{"",a,A,a ,ä,ä,b}'),
  ('varchar', '{"",a,A,"a ",b}'),
  ('bpchar', '{"",a,"a ","a  ",A," "}'),
  ('char(5)', '{"",a,"a ","a  ",A," "}'),
  ('name', '{"",a,"a ",A}'),
  ('name COLLATE no_case', '{a,A,á}'),
  ('citext', '{"",a,A,aB,Ab,"a "}'),
  ('text COLLATE "C"', '{a,A,ä}'),
  ('text COLLATE careful', '{a,A,á,Á,"a "}'),
  ('text COLLATE no_case', '{a,A,á,Á,"a "}'),
  ('text COLLATE no_accent', '{a,A,á,Á,"a "}'),
  ('varchar COLLATE no_case', '{a,A,á,Á}'),
  ('bpchar COLLATE no_case', '{a,"A ",á,Á}'),
  ('citext COLLATE no_accent', '{a,A,á}'),
  ('bytea', '{"\\x","\\x00","\\x0000","\\x61"}'),
  ('uuid', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11,00000000-0000-0000-0000-000000000000}'),
  ('date', '{2026-01-01,"Jan 1 2026",infinity,-infinity,"0001-01-01 BC"}'),
  ('time', '{12:00,12:00:00.000,"12:00 PM",24:00,00:00}'),
  ('timetz', '{12:00+00,13:00+01,12:00+01}'),
  ('timestamp', '{2026-01-01,"2026-01-01 00:00",infinity,-infinity}'),
  ('timestamptz', '{"2026-01-01 00:00+00","2026-01-01 01:00+01","2026-01-01 00:00+01",infinity}'),
  ('interval', '{"1 day","24 hours","30 days","1 month","00:00","-1 day","1 month -30 days"}'),
  ('inet', '{1.2.3.4,1.2.3.4/32,1.2.3.4/24,"::1"}'),
  ('cidr', '{1.2.3.0/24,1.2.3.0,"::/0"}'),
  ('macaddr', '{08:00:2b:01:02:03,08-00-2B-01-02-03,08:00:2b:01:02:04}'),
  ('macaddr8', '{08:00:2b:01:02:03:04:05,08:00:2b:01:02:03,08:00:2b:ff:fe:01:02:03}'),
  ('jsonb', '{1,1.0,1e0,"\"1\"","{\"a\":1, \"b\":2}","{\"b\":2,\"a\":1.0}","{\"a\":-1,\"b\":2}","[]","{}","null","[1]","[[1]]","[[1,2]]","[[1],2]","[1,[2]]","true","\"true\""}'),
  ('mood', '{sad,ok,happy,ok}'),
  ('numrange', '{"[1,2]","[1.0,2.00]","[1,2)","[-2,-1]","[1,)","(,1]",empty}'),
  ('int4range', '{"[1,3)","[1,2]","(0,3)",empty,"[5,5)","(,)"}'),
  ('textrange', '{"[a,b)","[A,B)","[á,b)"}'),
  ('int4multirange', '{"{[1,3)}","{[1,2],[2,2]}","{[1,2),[5,6)}","{[1,6)}","{}"}'),
  ('tid', '{"(0,1)","(0,2)","(1,1)"}'),
  ('pair', '{"(1,a)","(1.0,A)","(1,b)","(,a)","(,A)","(,)"}')
) AS v (type, literals), LATERAL compare(v.type, v.literals::text[]) AS c;

-- ---- arrays: element by element, with shape and bounds ---------------------------

SELECT c.* FROM (VALUES
  ('int4[]', '{"{1,2}","{1, 2}","{2,1}","{{1,2}}","{{1},{2}}","[0:1]={1,2}","{}","{NULL}","{1,NULL}","{NULL,1}"}'),
  ('float8[]', '{"{0}","{-0}","{NaN}","{nan}"}'),
  ('numeric[]', '{"{1,2.0}","{1.00,2}","{12}"}'),
  ('text[]', '{"{a}","{A}","{\"\"}","{}","{NULL}","{\"NULL\"}"}'),
  ('text[] COLLATE no_case', '{"{a}","{A}","{á}"}'),
  ('citext[]', '{"{a}","{A}","{b}"}'),
  ('pair[]', '{"{\"(1,a)\"}","{\"(1.0,A)\"}","{NULL}"}'),
  ('small[]', '{"{1}","{2}"}'),
  ('oidvector', '{"1 2","2 1",""}'),
  ('int2vector', '{"1 2","2 1",""}')
) AS v (type, literals), LATERAL compare(v.type, v.literals::text[]) AS c;

-- ---- across types: what is the same value is the same key --------------------------

SELECT streamfilter_add(f, 7::int2) @> 7::int8 AS int2_int8, streamfilter_add(f, -7) @> (-7)::int8 AS int4_int8,
       streamfilter_add(f, 0.5::float4) @> 0.5::float8 AS float4_float8,
       streamfilter_add(f, 0.1::float4) @> 0.1::float8 AS not_exact,
       (0.1::float4 = 0.1::float8) AS as_postgres
FROM (SELECT 'bloom(memory=1kB, k=8)'::streamfilter) AS v (f);
SELECT streamfilter_add(f, 'x') @> 'x'::text AS literal_text, streamfilter_add(f, 'x'::varchar(5)) @> 'x'::text AS varchar_text,
       streamfilter_add(f, 'x'::char(5)) @> 'x'::text AS char_text, streamfilter_add(f, 'x'::name) @> 'x'::text AS name_text
FROM (SELECT 'bloom(memory=1kB, k=8)'::streamfilter) AS v (f);

-- ---- how a value is stored does not matter ------------------------------------------

-- The same text from an expression, and stored: compressed, out of line, or both; and a short text,
-- whose header has one byte in a table and four elsewhere.
CREATE FUNCTION long_text(n int) RETURNS text LANGUAGE sql IMMUTABLE
RETURN CASE WHEN n = 2 THEN (SELECT string_agg('https://example.com/' || md5(i::text), ' ' ORDER BY i)
                             FROM generate_series(1, 1000) i)
       ELSE repeat('abc', 2000) END;
SET default_toast_compression = pglz;
CREATE TABLE stored (n int, how text, long text, short text, list text[], doc jsonb, whole pair);
INSERT INTO stored VALUES (1, 'compressed'), (2, 'compressed, out of line'), (3, 'out of line');
ALTER TABLE stored ALTER long SET STORAGE external;
UPDATE stored SET long = long_text(n) WHERE n = 3;
ALTER TABLE stored ALTER long SET STORAGE extended;
UPDATE stored SET long = long_text(n) WHERE n < 3;
UPDATE stored SET short = 'short', list = ARRAY[long, 'x'], doc = jsonb_build_object('k', long),
  whole = ROW(1, long)::pair;
SELECT n, how, pg_column_compression(long) AS compression, pg_column_size(long) < length(long) AS smaller
FROM stored ORDER BY n;
WITH computed AS (SELECT n, long_text(n) AS long FROM stored)
SELECT how, streamfilter_add(f, s.long) @> c.long AS long,
       streamfilter_add(f, s.short) @> ('sho' || 'rt') AS short,
       streamfilter_add(f, s.list) @> ARRAY[c.long, 'x'] AS list,
       streamfilter_add(f, s.doc) @> jsonb_build_object('k', c.long) AS doc,
       streamfilter_add(f, s.whole) @> ROW(1.0, upper(c.long) COLLATE no_case) AS whole,
       streamfilter_add(f, ROW(s.long, s.list)) @> ROW(c.long, ARRAY[c.long, 'x']) AS two,
       streamfilter_add(f, s.long) @> (c.long || 'x') AS other
FROM stored AS s JOIN computed AS c USING (n),
     (SELECT 'bloom(memory=1kB, k=8)'::streamfilter) AS v (f)
ORDER BY n;
DROP TABLE stored;
DROP FUNCTION long_text;

-- ---- rows: several columns ------------------------------------------------------------

SELECT a, b, ROW(a.*) = ROW(b.*) AS equal,
       streamfilter_add('bloom(memory=1kB, k=16)', a) @> b AS same_key
FROM (VALUES (1, 'x'), (1, 'y'), (2, 'x')) AS a (i, t), (VALUES (1.0, 'x'), (2.0, 'y')) AS b0 (i, t),
     LATERAL (SELECT b0.i::int, b0.t) AS b (i, t)
ORDER BY 1, 2;
-- Nothing runs together at the border of two columns, and order counts.
SELECT streamfilter_add(f, ROW('ab', 'c')) @> ROW('a', 'bc') AS border,
       streamfilter_add(f, ROW(1, 2)) @> ROW(2, 1) AS swapped,
       streamfilter_add(f, ROW(ROW(1, 2), 3)) @> ROW(1, ROW(2, 3)) AS nesting,
       streamfilter_add(f, ROW('', NULL)) @> ROW(NULL, '') AS empty_or_null
FROM (SELECT 'bloom(memory=1kB, k=16, nulls=''not distinct'')'::streamfilter) AS v (f);
-- A row of one column is that column.
SELECT streamfilter_add(f, ROW(5)) @> 5 AS one FROM (SELECT 'bloom(memory=1kB, k=16)'::streamfilter) AS v (f);
-- Each column keeps its own collation, in named and in anonymous rows.
SELECT streamfilter_add(f, ROW(1, 'A')::pair) @> ROW(1.00, 'a')::pair AS named,
       streamfilter_add(f, ROW(1, 'A' COLLATE no_case)) @> ROW(1, 'a' COLLATE no_case) AS anonymous,
       streamfilter_add(f, ROW(1, 'A')) @> ROW(1, 'a') AS default_collation,
       streamfilter_add(f, 'A' COLLATE no_case) @> ('a' COLLATE no_case) AS alone
FROM (SELECT 'bloom(memory=1kB, k=16)'::streamfilter) AS v (f);
-- Columns dropped from a row type are gone from the key.
CREATE TABLE shrinking (a int, gone text, b int);
INSERT INTO shrinking VALUES (1, 'x', 2);
ALTER TABLE shrinking DROP gone;
SELECT streamfilter_add('bloom(memory=1kB, k=16)', s) @> ROW(1, 2) AS same FROM shrinking AS s;
DROP TABLE shrinking;
-- Rows of different types in one stream.
SELECT bool_and(streamfilter_add('bloom(memory=1kB, k=16)', r) @> r) AS found,
       count(*) FILTER (WHERE 'bloom(memory=1kB, k=16)'::streamfilter @> r) AS in_empty
FROM (SELECT ROW(i, i::text) AS r FROM generate_series(1, 5) i
      UNION ALL SELECT ROW(i::text, i, 0.5) FROM generate_series(1, 5) i) AS mixed;

-- ---- golden vectors: the same hash on every machine and build -----------------------------

-- The bits that a key sets, without header and counters.
CREATE FUNCTION golden(f streamfilter) RETURNS text
LANGUAGE sql RETURN md5(substring(streamfilter_send(f) FROM 129 FOR 4032));
\set f '\'bloom(memory=4224, k=8)\'::streamfilter'
SELECT key, hash FROM (VALUES
  (1, 'true', golden(streamfilter_add(:f, true))),
  (2, '42 (smallint)', golden(streamfilter_add(:f, 42::int2))),
  (3, '42 (integer)', golden(streamfilter_add(:f, 42))),
  (4, '42 (bigint)', golden(streamfilter_add(:f, 42::int8))),
  (5, '-1', golden(streamfilter_add(:f, -1))),
  (6, '1.5 (real)', golden(streamfilter_add(:f, 1.5::float4))),
  (7, '1.5 (double precision)', golden(streamfilter_add(:f, 1.5::float8))),
  (8, 'NaN', golden(streamfilter_add(:f, 'nan'::float8))),
  (9, '-0 (double precision)', golden(streamfilter_add(:f, '-0'::float8))),
  (10, 'empty text', golden(streamfilter_add(:f, ''))),
  (11, 'abc (text)', golden(streamfilter_add(:f, 'abc'::text))),
  (12, 'abc (char(9))', golden(streamfilter_add(:f, 'abc'::char(9)))),
  (13, 'a thousand x', golden(streamfilter_add(:f, repeat('x', 1000)))),
  (14, 'bytes', golden(streamfilter_add(:f, '\x00ff'::bytea))),
  (15, 'uuid', golden(streamfilter_add(:f, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid))),
  (16, 'date', golden(streamfilter_add(:f, '2026-01-01'::date))),
  (17, 'timestamptz', golden(streamfilter_add(:f, '2026-01-01 00:00+00'::timestamptz))),
  (18, 'enum', golden(streamfilter_add(:f, 'happy'::mood))),
  (19, 'row', golden(streamfilter_add(:f, ROW(42, 'abc')))),
  (20, 'array', golden(streamfilter_add(:f, ARRAY[1, 2, NULL]))),
  (23, 'numeric', golden(streamfilter_add(:f, 1.50))),
  (24, 'numeric, negative', golden(streamfilter_add(:f, -1.5))),
  (25, 'jsonb', golden(streamfilter_add(:f, '{"a": [1, null, "x"]}'::jsonb))),
  (26, 'interval', golden(streamfilter_add(:f, '1 day'::interval))),
  (27, 'timetz', golden(streamfilter_add(:f, '12:00+01'::timetz))),
  (28, 'range', golden(streamfilter_add(:f, '[1,3)'::int4range))),
  (29, 'multirange', golden(streamfilter_add(:f, '{[1,3),[5,)}'::int4multirange))),
  (21, 'row with NULL', golden(streamfilter_add('bloom(memory=4224, k=8, nulls=''not distinct'')', ROW(42, NULL)))),
  (22, 'abc, other seed', golden(streamfilter_add('bloom(memory=4224, k=8, seed=1)', 'abc')))
) AS v (n, key, hash) ORDER BY n;
-- Types not known to the extension are hashed by their operator class.
SELECT key, hash FROM (VALUES
  (1, 'inet', golden(streamfilter_add(:f, '1.2.3.4'::inet))),
  (2, 'citext', golden(streamfilter_add(:f, 'AbC'::citext)))
) AS v (n, key, hash) ORDER BY n;

DROP FUNCTION compare, golden;
DROP TYPE textrange;
DROP TYPE pair;
DROP TYPE mood;
DROP DOMAIN small;
DROP EXTENSION citext;
DROP COLLATION no_case, no_accent, careful;
