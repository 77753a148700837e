--
-- Values on their way into a filter: what an INSERT into its columns would do to them, by implicit
-- casts only
--
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN tiny AS positive NOT NULL CHECK (VALUE < 10);
SELECT format('CREATE FOREIGN TABLE kept_%s (k %s) SERVER streamfilter OPTIONS (kind ''bloom'', keys ''10000'', fpr ''1e-6'')', name, type)
FROM (VALUES ('big', 'bigint'), ('numeric', 'numeric(5,2)'), ('float', 'double precision'), ('text', 'text'),
  ('varchar', 'varchar(3)'), ('char', 'char(3)'), ('time', 'timestamptz(0)'), ('interval', 'interval day to second (0)'),
  ('mood', 'mood'), ('pair', 'pair'), ('list', 'varchar(3)[]'), ('tiny', 'tiny')) AS filters (name, type) \gexec

-- ---- untyped literals: read as the column's type ------------------------------------------------

SELECT streamfilter_seen('kept_big', '1'), streamfilter_seen('kept_big', 1);
SELECT streamfilter_seen('kept_numeric', '1.004'), streamfilter_seen('kept_numeric', 1.00);
SELECT streamfilter_seen('kept_text', 'a'), streamfilter_seen('kept_text', text 'a');
SELECT streamfilter_seen('kept_mood', 'sad'), streamfilter_seen('kept_mood', mood 'sad');
SELECT streamfilter_seen('kept_pair', '(1,x)'), streamfilter_seen('kept_pair', ROW(1, 'x')::pair);
SELECT streamfilter_seen('kept_list', '{a,b}'), streamfilter_seen('kept_list', ARRAY['a', 'b']);
SELECT streamfilter_seen('kept_tiny', '1'), streamfilter_seen('kept_tiny', 1);
SELECT streamfilter_seen('kept_big', 'one');
SELECT streamfilter_seen('kept_varchar', 'long');
SELECT streamfilter_seen('kept_list', '{long}');
SELECT streamfilter_seen('kept_mood', 'happyish');
SELECT streamfilter_seen('kept_tiny', '10');
SELECT streamfilter_seen('kept_tiny', NULL);
SELECT streamfilter_seen('kept_big', NULL), streamfilter_seen('kept_big', NULL);

-- ---- implicit casts -----------------------------------------------------------------------------

SELECT streamfilter_seen('kept_big', smallint '1'), streamfilter_seen('kept_big', int '1');
SELECT streamfilter_seen('kept_numeric', bigint '7'), streamfilter_seen('kept_numeric', int '7');
SELECT streamfilter_seen('kept_float', 0.5), streamfilter_seen('kept_float', real '0.5'),
       streamfilter_seen('kept_float', double precision '0.5');
SELECT streamfilter_seen('kept_text', varchar 'b'), streamfilter_seen('kept_text', name 'b'),
       streamfilter_seen('kept_text', char(5) 'b'), streamfilter_seen('kept_text', '"b"'::jsonb ->> 0);
SELECT streamfilter_seen('kept_char', text 'x'), streamfilter_seen('kept_char', varchar 'x  ');
SELECT streamfilter_seen('kept_time', date '2026-01-01'),
       streamfilter_seen('kept_time', timestamp '2026-01-01');
SELECT streamfilter_seen('kept_tiny', positive '2'), streamfilter_seen('kept_tiny', tiny '2'),
       streamfilter_seen('kept_tiny', smallint '2');
-- Domains of other types count as these.
SELECT streamfilter_seen('kept_big', positive '1');

-- ---- the column's length and precision, also for values of its own type -------------------------

SELECT streamfilter_seen('kept_varchar', varchar 'abc '), streamfilter_seen('kept_varchar', varchar 'abc');
SELECT streamfilter_seen('kept_varchar', varchar 'abcd');
SELECT streamfilter_seen('kept_char', char(9) 'y'), streamfilter_seen('kept_char', 'y');
SELECT streamfilter_seen('kept_char', char(9) 'abcd');
SELECT streamfilter_seen('kept_numeric', 2.345), streamfilter_seen('kept_numeric', 2.35);
SELECT streamfilter_seen('kept_numeric', 1000.0);
SELECT streamfilter_seen('kept_time', timestamptz '2026-01-01 10:00:00.4'),
       streamfilter_seen('kept_time', timestamptz '2026-01-01 10:00:00.3');
SELECT streamfilter_seen('kept_interval', interval '1 second 10 milliseconds'),
       streamfilter_seen('kept_interval', interval '1 second');
SELECT streamfilter_seen('kept_list', ARRAY['abc ']::varchar[]),
       streamfilter_seen('kept_list', ARRAY['abc']::text[]);
SELECT streamfilter_seen('kept_list', ARRAY['abcd']::varchar[]);
SELECT streamfilter_seen('kept_tiny', 11);
SELECT streamfilter_seen('kept_tiny', -1);
SELECT streamfilter_seen('kept_tiny', NULL::int);

-- ---- everything else is an error ----------------------------------------------------------------

SELECT streamfilter_seen('kept_big', text '1');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT streamfilter_seen('kept_big', 1.0);
SELECT streamfilter_seen('kept_text', 1);
SELECT streamfilter_seen('kept_varchar', ROW('a'));
SELECT streamfilter_seen('kept_pair', ROW(1, 'x'));
SELECT streamfilter_seen('kept_list', 'a'::text);
SELECT streamfilter_seen('kept_mood', text 'sad');
SELECT streamfilter_seen('kept_time', 0);
-- A cast in the query does it.
SELECT streamfilter_seen('kept_big', (text '1')::bigint), streamfilter_seen('kept_mood', (text 'sad')::mood);

-- Casts that users declare implicit count, too.
CREATE FUNCTION to_big(pair) RETURNS bigint LANGUAGE sql AS 'SELECT $1.a';
CREATE CAST (pair AS bigint) WITH FUNCTION to_big(pair) AS IMPLICIT;
SELECT streamfilter_seen('kept_big', p)
FROM (VALUES (ROW(1, 'x')::pair), (ROW(8, 'x')::pair), (ROW(8, 'y')::pair)) AS v(p);
DROP CAST (pair AS bigint);

-- Many rows, one call site: each value is converted anew.
SELECT count(*) FILTER (WHERE streamfilter_seen('kept_varchar', n::varchar))
FROM generate_series(100, 999) AS n;
SELECT count(*) FILTER (WHERE streamfilter_seen('kept_numeric', (n / 1000.0)))
FROM generate_series(100001, 101000) AS n;

DROP FOREIGN TABLE kept_big, kept_numeric, kept_float, kept_text, kept_varchar, kept_char, kept_time,
  kept_interval, kept_mood, kept_pair, kept_list, kept_tiny;
DROP FUNCTION to_big;
DROP TYPE mood, pair;
DROP DOMAIN tiny, positive;
