-- A definition given as text is a request, and all that read it make the same of it: kind auto keeps fpr whatever memory and keys are,
-- and a kind that was named and cannot keep it is refused.
SET client_min_messages = warning;
CREATE TABLE grid AS
SELECT row_number() OVER () AS number, m AS memory, k AS keys, f AS fpr,
  format('auto(memory=%s%s, fpr=%s)', m, ', keys=' || k, f) AS definition
FROM unnest('{1kB,16kB,64kB,1MB,8MB}'::text[]) m, unnest('{NULL,100,5000,50000,500000,5000000}'::bigint[]) k,
  unnest('{0.1,0.01,0.001,0.000001}'::float8[]) f;
SELECT count(*) FROM grid;

-- ---- values ---------------------------------------------------------------------------------------
CREATE TABLE of_values AS
SELECT g.*, i ->> 'kind' AS kind, (i ->> 'fpr_bound')::float8 AS bound
FROM grid g, streamfilter_info(definition::streamfilter) i;
SELECT definition, kind, bound FROM of_values WHERE bound > fpr ORDER BY number;
SELECT kind, count(*) FROM of_values GROUP BY kind ORDER BY kind;
-- A restored dump asks for the same.
SET check_function_bodies = off;
SELECT definition, i ->> 'fpr_bound' AS bound
FROM grid, streamfilter_info(definition::streamfilter) i WHERE (i ->> 'fpr_bound')::float8 > fpr ORDER BY number;
RESET check_function_bodies;

-- ---- aggregates, evaluations ----------------------------------------------------------------------
DO $$
DECLARE g record; n int := 0;
BEGIN
  FOR g IN SELECT * FROM of_values WHERE memory <> '8MB' ORDER BY number LOOP
    PERFORM FROM (SELECT streamfilter_info(streamfilter_agg(i, g.definition::streamfilter)) AS info FROM generate_series(1, 3) i) _
      WHERE info ->> 'kind' = g.kind AND (info ->> 'fpr_bound')::float8 = g.bound;
    n := n + found::int;
    PERFORM FROM streamfilter_evaluate('SELECT 1', ARRAY[g.definition]::streamfilter[]) e
      WHERE (streamfilter_info(e.filter::streamfilter) ->> 'fpr_bound')::float8 = g.bound;
    n := n + found::int;
  END LOOP;
  RAISE WARNING '% of % are as the value', n, 2 * (SELECT count(*) FROM of_values WHERE memory <> '8MB');
END $$;

-- ---- relations ------------------------------------------------------------------------------------
DO $$
DECLARE g record; n int := 0;
BEGIN
  FOR g IN SELECT * FROM of_values WHERE memory <> '8MB' ORDER BY number LOOP
    EXECUTE format('CREATE FOREIGN TABLE one (id bigint) SERVER streamfilter OPTIONS (memory %L, fpr %L, persistence %L%s)',
      g.memory, g.fpr, 'unlogged', ', keys ' || quote_literal(g.keys));
    INSERT INTO one VALUES (1);
    PERFORM FROM streamfilter_stats s WHERE s.filter = 'one'::regclass AND s.kind = g.kind AND s.fpr_bound <= g.fpr;
    n := n + found::int;
    DROP FOREIGN TABLE one;
  END LOOP;
  RAISE WARNING '% of % are as the value', n, (SELECT count(*) FROM of_values WHERE memory <> '8MB');
END $$;

-- ---- kinds that are named -------------------------------------------------------------------------
SELECT 'bloom(memory=64kB, keys=5000000, fpr=0.001)'::streamfilter;
SELECT streamfilter_agg(i, 'bloom(memory=64kB, keys=5000000, fpr=0.001)') FROM generate_series(1, 3) i;
SELECT * FROM streamfilter_evaluate('SELECT 1', '{"bloom(memory=64kB, keys=5000000, fpr=0.001)"}');
SELECT * FROM streamfilter_profile('SELECT 1', '{"bloom(memory=64kB, keys=5000000, fpr=0.001)"}', 'lag');
CREATE FOREIGN TABLE one (id bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '5000000', fpr '0.001');
\echo :LAST_ERROR_SQLSTATE
-- A window makes it kind vqf.
SELECT 'auto(memory=1kB, window="1000000 rows", fpr=0.001)'::streamfilter;
-- With contents it is state, and read whatever it promises.
SET check_function_bodies = off;
CREATE TABLE stored AS
SELECT streamfilter_add('bloom(memory=1kB, keys=100000, fpr=0.001, k=2)', 7) AS f;
RESET check_function_bodies;
SELECT f::text::streamfilter @> 7 AS known FROM stored;
SELECT regexp_replace(f::text, ':1:.*', '')::streamfilter FROM stored;
DROP TABLE grid, of_values, stored;
