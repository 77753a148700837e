-- What an INSERT does in batches and row by row. compare() needs answer_to(statement, target).
CREATE FUNCTION way_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  line text;
  way text := 'as ever';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || split_part(statement, ';', 1) LOOP
    IF line LIKE '%Inserts: %' THEN way := substring(line FROM 'Inserts: (.*)'); END IF;
    IF line LIKE '%Reason: %' THEN way := way || ', ' || substring(line FROM 'Reason: (.*)'); END IF;
  END LOOP;
  RETURN way;
EXCEPTION WHEN OTHERS THEN RETURN SQLERRM;
END $$;
CREATE FUNCTION compare(statement text, target text DEFAULT 't', OUT way text, OUT same boolean, OUT answer text)
  LANGUAGE plpgsql AS $$
DECLARE
  row_by_row text;
BEGIN
  PERFORM set_config('streamfilter.batch_insert', 'off', true);
  row_by_row := answer_to(statement, target);
  PERFORM set_config('streamfilter.batch_insert', 'on', true);
  way := way_of(statement);
  answer := answer_to(statement, target);
  same := answer = row_by_row;
  IF NOT same THEN answer := answer || E'\n' || row_by_row; END IF;
END $$;
-- What EXPLAIN ANALYZE says, without times, and what versions of the server say in their own ways.
CREATE FUNCTION explain_analyze(statement text, options text DEFAULT '') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF' || options || ') ' || statement LOOP
    RETURN NEXT replace(line, '.00 ', ' ');
  END LOOP;
END $$;
