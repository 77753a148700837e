--
-- What holds for every kind there is: a filter of each, by the definition that is advised for it. Whatever does not hold
-- is listed. A kind that is added is met here without a line of its own. One kind guesses, so some rates are bounds.
--
SET client_min_messages = warning;  -- most kinds make no use of importance

-- ---- the kinds, and a definition of each -----------------------------------------------------------
CREATE TABLE kinds (kind text PRIMARY KEY, definition text, is_tried boolean NOT NULL DEFAULT false);
DO $$
DECLARE hint text;
BEGIN
  PERFORM 'none()'::streamfilter;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  INSERT INTO kinds (kind) SELECT regexp_split_to_table(substring(hint FROM 'Valid kinds are: auto, (.*)\.$'), ', ');
END $$;
UPDATE kinds SET definition =
  (SELECT a.prototype FROM streamfilter_advise('64kB', 0.01, 5000, 1000) WITH ORDINALITY AS a
   WHERE a.kind = kinds.kind ORDER BY a.ordinality LIMIT 1);
-- Those that only count are not advised.
SELECT kind FROM kinds WHERE definition IS NULL;
UPDATE kinds SET definition = kind || '(memory=64kB)' WHERE definition IS NULL;

CREATE FUNCTION options_of(definition text) RETURNS text LANGUAGE sql AS $$
  SELECT 'kind ''' || substring(definition FROM '^\w+') || ''', seed ''1''' ||
         string_agg(', ' || m[1] || ' ''' || coalesce(m[2], m[3]) || '''', '')
  FROM regexp_matches(substring(definition FROM '\((.*)\)'), '(\w+)=(?:''([^'']*)''|([^,]*))', 'g') AS m $$;
CREATE FUNCTION known(first int, last int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN count(*) FILTER (WHERE streamfilter_test('subject', i)) FROM generate_series(first, last) AS i;
END $$;
CREATE TABLE failure (kind text, what text);
CREATE FUNCTION expect(kind text, what text, holds boolean) RETURNS void LANGUAGE sql AS
$$ INSERT INTO failure SELECT kind, what WHERE holds IS NOT TRUE $$;

-- ---- each of them ------------------------------------------------------------------------------------
CREATE PROCEDURE try(kind text, definition text, only_counts boolean) LANGUAGE plpgsql AS $$
DECLARE
  before bigint;
  own bigint;
  forgets boolean := false;
  value streamfilter;
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE subject (id int, importance float8 OPTIONS (role ''importance'')) SERVER streamfilter OPTIONS (%s)', options_of(definition));
  PERFORM expect(kind, 'an empty filter knows nothing', known(1, 500) <= 20);
  INSERT INTO subject SELECT i, 7 FROM generate_series(1, 200) AS i;
  COMMIT;
  before := known(1, 200);
  PERFORM expect(kind, 'what was added is known', before >= 190);
  PERFORM expect(kind, 'little else is', only_counts OR known(10001, 11000) <= 40);
  PERFORM expect(kind, 'a repeat is seen', streamfilter_seen('subject', 200, 7));
  COMMIT;

  -- What a transaction added is known to it, and to nobody when it is rolled back.
  value := streamfilter_value('subject');
  INSERT INTO subject SELECT i, 7 FROM generate_series(201, 300) AS i;
  own := known(201, 300);
  ROLLBACK;
  PERFORM expect(kind, 'a transaction knows its own rows', own >= 95);
  PERFORM expect(kind, 'what was rolled back is forgotten', only_counts OR known(201, 300) <= 8);
  PERFORM expect(kind, 'the filter is as it was', value::text = streamfilter_value('subject')::text);

  -- Its value as text, and merged into an empty filter.
  before := known(1, 200);
  PERFORM expect(kind, 'the text reads back', value::text::streamfilter::text = value::text);
  PERFORM expect(kind, 'a value knows its keys',
                 (SELECT count(*) FILTER (WHERE value @> i) = before FROM generate_series(1, 200) AS i));
  TRUNCATE subject;
  PERFORM expect(kind, 'TRUNCATE forgets all', known(1, 200) <= 8);
  PERFORM streamfilter_merge('subject', value);
  COMMIT;
  PERFORM expect(kind, 'a merged value is known', known(1, 200) = before);

  BEGIN
    DELETE FROM subject WHERE id = 7;
    forgets := true;
  EXCEPTION WHEN feature_not_supported THEN
    PERFORM expect(kind, 'it says why', SQLERRM LIKE '%cannot forget single keys');
  END;
  COMMIT;
  PERFORM expect(kind, 'a deleted key is new', NOT forgets OR known(7, 7) = 0);
  PERFORM expect(kind, 'no other one is', known(1, 200) >= before - 5);
  DROP FOREIGN TABLE subject;
  UPDATE kinds SET is_tried = true WHERE kinds.kind = try.kind;
  COMMIT;
END $$;
DO $$
DECLARE each record;
BEGIN
  FOR each IN SELECT * FROM kinds ORDER BY kind LOOP
    CALL try(each.kind, each.definition, each.definition = each.kind || '(memory=64kB)');
  END LOOP;
END $$;
SELECT * FROM failure ORDER BY kind, what;
SELECT count(*) >= 16 AS all_there, bool_and(is_tried) AS all_tried FROM kinds;

RESET client_min_messages;
DROP TABLE kinds, failure;
DROP FUNCTION options_of, known, expect;
DROP PROCEDURE try;
