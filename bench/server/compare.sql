-- The cases of bench/compare through SQL, against what the library counted (bench/quality/compare_cases.cpp). Run by
-- bench/compare_sql.sh and test/t/format_compare.pl, which fill "rows" and "cases".
--   as values: SELECT compare_values();                      each case: the definition made of the text, and the errors
--   as filters: CALL compare_relations(every => 10);          each tenth case: options of a foreign table, a row a transaction
-- What differs is in "differences".
CREATE TABLE rows (stream text, n int, key int);
CREATE TABLE cases (number int GENERATED ALWAYS AS IDENTITY, stream text, definition text, chosen text, rows bigint,
  distinct_rows bigint, false_positives bigint, false_negatives bigint);
CREATE TABLE differences (surface text, stream text, definition text, library text, sql text);

-- What the text becomes, or NULL where it is refused.
CREATE FUNCTION made_of(definition text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN split_part((definition::streamfilter)::text, '|', 1);
EXCEPTION WHEN invalid_parameter_value OR invalid_text_representation OR feature_not_supported THEN
  RETURN NULL;
END $$;

CREATE FUNCTION compare_values() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  one record;
  compared bigint := 0;
BEGIN
  INSERT INTO differences SELECT 'definition', stream, definition, chosen, made_of(definition)
  FROM cases WHERE chosen IS DISTINCT FROM made_of(definition);
  FOR one IN SELECT stream, array_agg(number ORDER BY number) AS numbers, array_agg(definition::streamfilter ORDER BY number) AS filters
    FROM cases WHERE chosen IS NOT NULL GROUP BY stream, number / 64 LOOP
    WITH measured AS (
      SELECT one.numbers[ordinality] AS number, e.* FROM streamfilter_evaluate(
        format('SELECT key FROM rows WHERE stream = %L ORDER BY n', one.stream), one.filters) WITH ORDINALITY e)
    INSERT INTO differences
    SELECT 'value', stream, definition, format('%s, %s', c.false_positives, c.false_negatives),
      format('%s, %s', m.false_positives, m.false_negatives)
    FROM cases c JOIN measured m USING (number)
    WHERE (c.rows, c.distinct_rows, c.false_positives, c.false_negatives)
      IS DISTINCT FROM (m.rows, m.distinct_rows, m.false_positives, m.false_negatives);
    compared := compared + cardinality(one.numbers);
  END LOOP;
  RETURN compared;
END $$;

-- The options of CREATE FOREIGN TABLE for the text of a definition: kind(name=value, name='value').
CREATE FUNCTION options_of(definition text) RETURNS text LANGUAGE sql AS $$
  SELECT format('kind %L, ', substring(definition FROM '^\w+')) || string_agg(format('%s %L', o[1], coalesce(o[2], o[3])), ', ')
  FROM regexp_matches(substring(definition FROM '\((.*)\)'), '(\w+)=(?:''([^'']*)''|"?([^,"]*)"?)', 'g') o
$$;

-- Values keep 1 % where they are told nothing, filters 1e-6: where no fpr was given they get all that the library derived.
CREATE PROCEDURE compare_relations(every int, INOUT compared bigint DEFAULT 0) LANGUAGE plpgsql AS $$
DECLARE
  one record;
  a record;
  known boolean;
  positives bigint;
  negatives bigint;
BEGIN
  compared := 0;
  FOR one IN SELECT * FROM cases WHERE number % every = 0 ORDER BY number LOOP
    BEGIN
      EXECUTE format('CREATE FOREIGN TABLE f (key int) SERVER streamfilter OPTIONS (%s, seed ''0'', overfull ''discard'')',
        options_of(CASE WHEN one.definition ~ 'fpr=' THEN one.definition ELSE coalesce(one.chosen, one.definition) END));
    EXCEPTION WHEN invalid_parameter_value OR feature_not_supported THEN
      IF one.chosen IS NOT NULL THEN
        INSERT INTO differences VALUES ('options', one.stream, one.definition, one.chosen, sqlerrm);
      END IF;
      CONTINUE;
    END;
    COMMIT;
    compared := compared + 1;
    positives := 0;
    negatives := 0;
    FOR a IN SELECT key, row_number() OVER (PARTITION BY key ORDER BY n) > 1 AS repeat FROM rows WHERE stream = one.stream ORDER BY n LOOP
      known := streamfilter_seen('f', a.key);
      COMMIT;
      positives := positives + (known AND NOT a.repeat)::int;
      negatives := negatives + (NOT known AND a.repeat)::int;
    END LOOP;
    IF (positives, negatives) IS DISTINCT FROM (one.false_positives, one.false_negatives) THEN
      INSERT INTO differences VALUES ('filter', one.stream, one.definition,
        format('%s, %s', one.false_positives, one.false_negatives), format('%s, %s', positives, negatives));
    END IF;
    DROP FOREIGN TABLE f;
    COMMIT;
  END LOOP;
END $$;
