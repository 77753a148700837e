--
-- Text and binary input of type streamfilter: what is not a filter gets a clear error, never a crash
--
\getenv abs_builddir PG_ABS_BUILDDIR
\set file :abs_builddir '/results/value_input.bin'
SELECT set_config('test.file', :'file', false) IS NOT NULL AS ready;

-- What the input functions say to a text, and to bytes (sent through binary COPY).
CREATE FUNCTION try_text(input text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM input::streamfilter;
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

CREATE TABLE received (f streamfilter);
CREATE FUNCTION try_bytes(input bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('COPY (SELECT %L::bytea) TO %L (FORMAT binary)',
                 input, current_setting('test.file'));
  EXECUTE format('COPY received FROM %L (FORMAT binary)', current_setting('test.file'));
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

-- ---- definitions ------------------------------------------------------------

-- With the nearest valid name, or all of them.
SELECT 'sbff(memory=64kB)'::streamfilter;
SELECT 'sbf(memroy=64kB)'::streamfilter;
SELECT 'bloom(memory=1kB, k=3, max=3)'::streamfilter;
SELECT 'sbf(colour=red)'::streamfilter;

-- Values out of range.
SELECT 'sbf(memory=64kB, fpr=1.5)'::streamfilter;
SELECT 'bloom(memory=64kB, k=65)'::streamfilter;
SELECT 'bloom(memory=64kB, nulls=maybe, k=1)'::streamfilter;
SELECT 'sbf(memory=64 parsecs)'::streamfilter;

-- Promises that cannot be kept.
SELECT 'bloom(memory=64kB)'::streamfilter;
SELECT streamfilter_add('bloom(memory=1kB, keys=1000000)', 1);
SELECT 'sbf(memory=10)'::streamfilter;

-- Sizes: nothing is allocated for these.
SELECT 'sbf(memory=1GB)'::streamfilter;
SELECT t AS input, try_text(t) AS result
FROM (VALUES ('sbf(memory=64TB)'), ('sbf(memory=900TB)'), ('sbf(memory=18446744073709551616)'),
             ('sbf(memory=-1)'), ('bloom(keys=1e12)')) AS v (t);

-- Syntax.
SELECT 'sbf(memory=64kB'::streamfilter;
SELECT 'sbf(memory=64kB) and more'::streamfilter;
SELECT t AS input, try_text(t) AS result
FROM (VALUES (''), (' '), ('sbf'), ('sbf('), ('sbf)'), ('('), ('sbf()()'), ('sbf(,)'), ('sbf(memory)'),
             ('sbf(memory=)'), ('sbf(memory=1kB,)'), ('sbf(memory=''1kB)'), ('sbf(kind=bloom)'),
             ('sbf(=1)'), ('sbf():'), ('sbf()::'), ('sbf():x:'), ('sbf():1:'), ('sbf():0:'),
             ('sbf():99999999999:')) AS v (t);

-- ---- bodies -------------------------------------------------------------------

CREATE TABLE original AS
SELECT streamfilter_add('bloom(memory=192, k=3)', 'x')::text AS t,
       streamfilter_send(streamfilter_add('bloom(memory=192, k=3)', 'x')) AS b;
SELECT t FROM original;

SELECT what, try_text(input) AS result
FROM original, LATERAL (VALUES
  (1, 'as it was', t),
  (2, 'blanks around it', ' ' || t || E'\n'),
  (3, 'without its last character', left(t, -1)),
  (4, 'without its last four', left(t, -4)),
  (5, 'with four more', t || 'AAAA'),
  (6, 'one character changed', replace(t, 'AAwA', 'AAgA')),
  (7, 'not base64', replace(t, 'AAwA', 'AA!A')),
  (8, 'padding inside', replace(t, 'AAwA', 'AA==')),
  (9, 'other parameters of the same size', replace(t, 'k=3', 'k=4')),
  (10, 'other memory', replace(t, '192', '256')),
  (11, 'another seed', replace(t, 'k=3', 'seed=1, k=3')),
  (12, 'another kind', replace(t, 'bloom(', 'sbf(')),
  (13, 'a version to come', replace(t, ':1:', ':2:'))) AS v (n, what, input)
ORDER BY n;
-- The long form of these errors.
SELECT left(t, -4)::streamfilter FROM original;
SELECT replace(t, ':1:', ':2:')::streamfilter FROM original;
SELECT replace(t, 'AAwA', 'AAgA')::streamfilter FROM original;

-- ---- bytes --------------------------------------------------------------------

-- A value is its block and 8 bytes of checksum. From 0: 4 bytes unused, 4 magic, 2 version …, 80
-- kind, 82 nulls, 84 slices, 88 memory, 96 bytes of a slice, 112 fpr, 128 k, 520 arrivals, 528 novel
-- ones, 536 bits set.
CREATE FUNCTION patched(b bytea, at int, new bytea) RETURNS bytea
LANGUAGE sql AS 'SELECT overlay(b PLACING new FROM at + 1)';

SELECT what, try_bytes(input) AS result
FROM original, LATERAL (VALUES
  (1, 'as it was', b),
  (2, 'nothing', '\x'),
  (3, 'three bytes', substring(b for 3)),
  (4, 'half a header', substring(b for 40)),
  (5, 'no body', substring(b for 64)),
  (6, 'no checksum', substring(b for 192)),
  (7, 'without its last byte', substring(b for 199)),
  (8, 'one byte more', b || '\x00'),
  (9, 'other magic', patched(b, 4, 'SFLX')),
  (10, 'a version to come', patched(b, 8, '\x02')),
  (11, 'version 0', patched(b, 8, '\x00')),
  (12, 'something unused', patched(b, 40, '\x01')),
  (13, 'a length', patched(b, 0, '\x01')),
  (14, 'one bit of the body', set_bit(b, 150 * 8, 1 - get_bit(b, 150 * 8))),
  (15, 'one bit of the checksum', set_bit(b, 199 * 8, 1 - get_bit(b, 199 * 8))),
  (16, 'a petabyte', patched(b, 12, '\x808080808080800103'))) AS v (n, what, input)
ORDER BY n;

-- Forged with the right checksum: parameters and state are checked, too.
SELECT what, try_bytes(patched(patched(b, at, new), 192, coalesce(checksum, '\x00'))) AS result
FROM (SELECT streamfilter_send('bloom(memory=192, k=3)') AS b) AS empty, (VALUES
  (1, 'nothing forged', 9, '\x01'::bytea, '\x2bae6c8914d6bb19'::bytea),
  (2, 'unknown kind', 9, '\x63', NULL),
  (3, 'a sort of option that is none', 10, '\x80', NULL),
  (4, 'an option that is none', 11, '\x81', NULL),
  (5, 'no slices', 10, '\x0401c0010003', NULL),
  (6, '2147483648 slices', 10, '\x0401c001808080800803', NULL),
  (7, '256 TB', 12, '\x8080808080804003', NULL),
  (8, 'a number without end', 12, '\xffffffffffffffffffffffffff', NULL),
  (9, 'fpr is no number', 10, '\x1001c0013e000000000000f87f03', NULL),
  (10, 'fpr written at length', 10, '\x1001c0013e000000000000e03f03', NULL),
  (11, 'a million hash functions', 14, '\xc0843d', NULL),
  (12, 'more bits set than there are', 88, '\x05', '\x426916f4951b7c49'),
  (13, 'more new keys than keys', 80, '\x07', '\x66afa8ab7fc2d348')
  ) AS v (n, what, at, new, checksum)
ORDER BY n;

-- ---- thousands of mutations -----------------------------------------------------

-- Every text and every value, changed at random, is refused with one of these errors, or is a
-- filter: its text reads back as itself.
SELECT setseed(0.5);
DO $$
DECLARE
  literals text[] := ARRAY['sbf(memory=1kB, fpr=0.01)', 'bloom(memory=2kB, keys=100)',
                           'bloom(memory=192, k=3, seed=7, nulls=''not distinct'', slices=1)',
                           'sbf(memory=64kB, max=3, k=2, p=10, slices=4)', (SELECT t FROM original)];
  junk text := '(),=:''" 0123456789eE.-+kMGTBsbfloompxyz/_?' || E'\n\t\\';
  t text;
  result text;
BEGIN
  FOR i IN 1 .. 2000 LOOP
    t := literals[1 + i % 5];
    FOR j IN 1 .. 1 + random() * 3 LOOP
      t := CASE (random() * 3)::int
        WHEN 0 THEN overlay(t PLACING substr(junk, 1 + (random() * 46)::int, 1)
                            FROM 1 + (random() * length(t))::int)
        WHEN 1 THEN overlay(t PLACING substr(junk, 1 + (random() * 46)::int, 1)
                            FROM 1 + (random() * length(t))::int FOR 0)
        WHEN 2 THEN overlay(t PLACING '' FROM 1 + (random() * length(t))::int FOR 1)
        ELSE left(t, (random() * length(t))::int)
      END;
    END LOOP;
    result := try_text(t);
    IF result = 'accepted' THEN
      IF t::streamfilter::text::streamfilter::text <> t::streamfilter::text THEN
        RAISE EXCEPTION 'not itself: %', t;
      END IF;
    ELSIF left(result, 5) NOT IN ('22P02', '22023', '54000') THEN
      RAISE EXCEPTION '%: %', t, result;
    END IF;
  END LOOP;
END $$;

DO $$
DECLARE
  values bytea[] := ARRAY[(SELECT b FROM original),
                          streamfilter_send(streamfilter_add('sbf(memory=1kB, max=3)', 1))];
  b bytea;
  result text;
BEGIN
  FOR i IN 1 .. 1000 LOOP
    b := values[1 + i % 2];
    FOR j IN 0 .. (random() * 3)::int LOOP
      b := set_byte(b, (random() * (length(b) - 1))::int, (random() * 255)::int);
    END LOOP;
    IF i % 10 = 0 THEN b := substring(b FOR (random() * length(b))::int); END IF;
    IF b = ANY (values) THEN CONTINUE; END IF;
    result := try_bytes(b);
    IF left(result, 5) <> '22P03' THEN RAISE EXCEPTION '%: %', b, result; END IF;
  END LOOP;
END $$;

-- The server has survived.
SELECT 'sbf(memory=1kB)'::streamfilter @> 1 AS answer;
DROP FUNCTION try_text, try_bytes, patched;
DROP TABLE received, original;
