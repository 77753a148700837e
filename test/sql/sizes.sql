-- Whatever sizes a filter has been through, and whatever was merged into it: new keys are taken for repeats no more often than
-- fpr_now says, and that is at most fpr_bound, and fpr, or overfull is true.
SET client_min_messages = error;
CREATE TABLE kinds (options text, bytes int, keys int, fpr float8);
INSERT INTO kinds VALUES
  ($$kind 'bloom'$$, 16384, 5500, 0.01),
  ($$kind 'bloom', layout 'blocked'$$, 16384, 4500, 0.01),
  ($$kind 'bloom', slices '4'$$, 16384, 5500, 0.01),
  ($$kind 'bloom', slices '4', slicing 'vertical'$$, 16384, 5500, 0.01),
  ($$kind 'vqf'$$, 16384, 5000, 0.01),
  ($$kind 'bsbf'$$, 16384, 3000, 0.02),
  ($$kind 'bsbfsd'$$, 16384, 3000, 0.02),
  ($$kind 'rlbsbf'$$, 16384, 3000, 0.02),
  ($$kind 'timer', window '1 hour'$$, 16384, 600, 0.01),
  ($$kind 'clq'$$, 16384, NULL, 0.01),
  ($$kind 'sbf'$$, 16384, NULL, 0.02),
  ($$kind 'sqf'$$, 16384, NULL, 0.05),
  ($$kind 'dsqf'$$, 32768, NULL, 0.05),
  ($$kind 'rsbf'$$, 16384, NULL, 0.05);
CREATE TABLE paths (path float8[]);
INSERT INTO paths VALUES ('{1}'), ('{2,1}'), ('{0.5,1}'), ('{1.25,1}'), ('{0.75,1}'), ('{0.75,1,2,1.25,0.5,1}');
CREATE TABLE steps (options text, path float8[], step text, asked float8, now float8, bound float8, overfull boolean, wrong int, of int);

-- So many new keys are asked for; none of them is added.
CREATE PROCEDURE measure(one kinds, path float8[], step text) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO steps SELECT one.options, path, step, one.fpr, fpr_now, fpr_bound, overfull, v.wrong, 8000
  FROM streamfilter_stats, (SELECT count(*) FILTER (WHERE streamfilter_test('seen', i)) FROM generate_series(1000001, 1008000) i) v (wrong)
  WHERE filter = 'seen'::regclass;
END $$;
CREATE PROCEDURE walk(one kinds, path float8[]) LANGUAGE plpgsql AS $$
DECLARE factor float8; keys int = coalesce(one.keys, 6000);
BEGIN
  EXECUTE format($c$CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (%s, memory '%s', fpr '%s' %s, seed '5')$c$,
    one.options, one.bytes, one.fpr, ', keys ''' || one.keys || '''');
  INSERT INTO seen SELECT generate_series(1, keys * 2 / 3);
  COMMIT;
  FOREACH factor IN ARRAY path LOOP
    EXECUTE format('ALTER FOREIGN TABLE seen OPTIONS (SET memory %L)', (one.bytes * factor)::int);
    COMMIT;
    CALL measure(one, path, 'x ' || factor);
  END LOOP;
  INSERT INTO seen SELECT generate_series(keys * 2 / 3 + 1, keys);
  COMMIT;
  CALL measure(one, path, 'as many as asked');
  IF one.options ~ 'clq|sqf' THEN
    DELETE FROM seen USING generate_series(1, keys, 3) i WHERE id = i;
    COMMIT;
    CALL measure(one, path, 'a third deleted');
    INSERT INTO steps SELECT s.options, s.path, 'the deleted ones', s.asked, s.now, s.bound, s.overfull, v.known, v.of FROM steps s,
      (SELECT count(*) FILTER (WHERE streamfilter_test('seen', i)), count(*) FROM generate_series(1, keys, 3) i) v (known, of)
      WHERE s.options = one.options AND s.path = walk.path AND s.step = 'a third deleted';
  END IF;
  INSERT INTO seen SELECT generate_series(keys + 1, 3 * keys);
  COMMIT;
  CALL measure(one, path, 'three times as many');
  TRUNCATE seen;
  COMMIT;
  INSERT INTO seen SELECT generate_series(1, keys);
  COMMIT;
  CALL measure(one, path, 'emptied and filled');
  DROP FOREIGN TABLE seen;
  COMMIT;
END $$;
-- Of two that hold all that they are to hold, a third, and different keys.
CREATE PROCEDURE merge(one kinds) LANGUAGE plpgsql AS $$
DECLARE keys int = coalesce(one.keys, 6000);
BEGIN
  FOR i IN 0 .. 2 LOOP
    EXECUTE format($c$CREATE FOREIGN TABLE %I (id int) SERVER streamfilter OPTIONS (%s, memory '%s', fpr '%s' %s, seed '5')$c$,
      CASE i WHEN 0 THEN 'seen' ELSE 'other' || i END, one.options, one.bytes, one.fpr, ', keys ''' || one.keys || '''');
  END LOOP;
  INSERT INTO seen SELECT generate_series(1, keys);
  INSERT INTO other1 SELECT generate_series(keys + 1, keys + keys / 3);
  INSERT INTO other2 SELECT generate_series(10 * keys + 1, 11 * keys);
  COMMIT;
  PERFORM streamfilter_merge('seen', streamfilter_value('other1'));
  COMMIT;
  CALL measure(one, '{}', 'a third merged');
  PERFORM streamfilter_merge('seen', streamfilter_value('other2'));
  COMMIT;
  CALL measure(one, '{}', 'as many merged');
  DROP FOREIGN TABLE seen, other1, other2;
  COMMIT;
END $$;
CREATE PROCEDURE walk_all() LANGUAGE plpgsql AS $$
DECLARE one kinds; path float8[];
BEGIN
  FOR one IN SELECT * FROM kinds LOOP
    FOR path IN SELECT p.path FROM paths p LOOP
      CALL walk(one, path);
    END LOOP;
    CALL merge(one);
  END LOOP;
END $$;
CALL walk_all();
-- Chance: four standard deviations.
CREATE FUNCTION exceeds(wrong int, rate float8, of int) RETURNS boolean LANGUAGE sql AS 'SELECT wrong > of * rate + 4 * sqrt(of * rate) + 2';
SELECT count(*) > 200 AS enough, count(DISTINCT options) AS kinds FROM steps;
SELECT options, path, step, now, wrong::float8 / of AS measured FROM steps WHERE exceeds(wrong, now * 1.1, of) AND NOT overfull;
SELECT options, path, step, now, bound FROM steps WHERE now > bound AND NOT overfull;
SELECT options, path, step, bound, asked FROM steps WHERE bound > asked * 1.1 AND NOT overfull;
SELECT options, path, step, bound, wrong::float8 / of AS measured, now FROM steps WHERE exceeds(wrong, asked * 1.1, of) AND NOT overfull;
DROP TABLE kinds, paths, steps CASCADE;
DROP ROUTINE exceeds, walk_all;
