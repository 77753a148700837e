-- streamfilter_slice_of: parts of a stream, the same on every server and in every release.

-- ---- golden vectors: these numbers must never change --------------------------------------------
SELECT n, streamfilter_slice_of(0, n) AS zero, streamfilter_slice_of(42, n) AS int,
       streamfilter_slice_of(-1::bigint, n) AS bigint, streamfilter_slice_of('/a'::text, n) AS text,
       streamfilter_slice_of('untyped', n) AS untyped, streamfilter_slice_of(1.50, n) AS numeric,
       streamfilter_slice_of(true, n) AS bool, streamfilter_slice_of(0.5::float8, n) AS float8,
       streamfilter_slice_of(NULL::int, n) AS null
FROM unnest('{1,2,10,1000,2147483647}'::int[]) n;
SELECT n, streamfilter_slice_of(ROW(42, '/a'::text), n) AS row,
       streamfilter_slice_of(ROW(42, NULL::text), n) AS row_with_null,
       streamfilter_slice_of('2026-01-01'::date, n) AS date,
       streamfilter_slice_of('2026-01-01 00:00Z'::timestamptz, n) AS timestamptz,
       streamfilter_slice_of('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, n) AS uuid,
       streamfilter_slice_of('\x00ff'::bytea, n) AS bytea,
       streamfilter_slice_of('{1,2}'::int[], n) AS array,
       streamfilter_slice_of('{"a": 1}'::jsonb, n) AS jsonb
FROM unnest('{2,1000,2147483647}'::int[]) n;

-- ---- equal keys, equal slices -------------------------------------------------------------------
SELECT streamfilter_slice_of(1::smallint, 1000000) = streamfilter_slice_of(1::bigint, 1000000) AS int,
       streamfilter_slice_of(1.0, 1000000) = streamfilter_slice_of(1.00, 1000000) AS numeric,
       streamfilter_slice_of('a'::char(3), 1000000) = streamfilter_slice_of('a'::char(5), 1000000) AS padded,
       streamfilter_slice_of('-0'::float8, 1000000) = streamfilter_slice_of(0::float8, 1000000) AS zero,
       streamfilter_slice_of(ROW(7), 1000000) = streamfilter_slice_of(7, 1000000) AS single,
       streamfilter_slice_of(ROW(NULL::int), 1000000) = streamfilter_slice_of(NULL::text, 1000000) AS nulls;
CREATE COLLATION no_case_slices (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT streamfilter_slice_of('Key' COLLATE no_case_slices, 1000000)
     = streamfilter_slice_of('kEY' COLLATE no_case_slices, 1000000) AS collation;
-- A key that is stored out of line is the same key.
CREATE TABLE long_keys (k text);
ALTER TABLE long_keys ALTER k SET STORAGE EXTERNAL;
INSERT INTO long_keys VALUES (repeat('x', 100000));
SELECT streamfilter_slice_of(k, 1000000) = streamfilter_slice_of(repeat('x', 100000), 1000000) AS toasted
FROM long_keys;

-- ---- even parts, which finer parts refine -------------------------------------------------------
-- 10000 keys over 10 slices: each part is binomial, 1000 with a deviation of 30; six of them here.
SELECT count(*) AS parts, min(keys) > 820 AND max(keys) < 1180 AS even
FROM (SELECT count(*) AS keys FROM generate_series(1, 10000) i
      GROUP BY streamfilter_slice_of(i, 10)) AS parts;
SELECT bool_and(streamfilter_slice_of(i, 40) / 4 = streamfilter_slice_of(i, 10)) AS refined
FROM generate_series(1, 1000) i;

-- ---- in indexes, constraints and parallel plans -------------------------------------------------
SELECT provolatile, proparallel, proisstrict FROM pg_proc WHERE proname = 'streamfilter_slice_of';
CREATE TABLE part (k int CHECK (streamfilter_slice_of(k, 4) = 2));
INSERT INTO part SELECT i FROM generate_series(1, 100) i WHERE streamfilter_slice_of(i, 4) = 2;
INSERT INTO part SELECT i FROM generate_series(1, 100) i WHERE streamfilter_slice_of(i, 4) = 1;

-- ---- errors -------------------------------------------------------------------------------------
SELECT streamfilter_slice_of(1, NULL) IS NULL AS unknown;
SELECT streamfilter_slice_of(1, 0);
SELECT streamfilter_slice_of(1, -3);
SELECT streamfilter_slice_of('1'::json, 3);
DROP TABLE long_keys, part;
