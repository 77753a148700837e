-- A filter that holds more keys than its rate allows lets repeats pass, so that no stream and no mistake in keys loses more than fpr.
SET client_min_messages = warning;
CREATE TABLE events (id bigint);
-- So many new rows, 600 a transaction: one of its own never loses any.
CREATE PROCEDURE add_new_rows(count int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 0 .. count / 600 - 1 LOOP
    INSERT INTO events SELECT (SELECT count(*) FROM events) + 1000000 * i + g FROM generate_series(1, 600) g;
    COMMIT;
  END LOOP;
END $$;
CREATE PROCEDURE add_filter(options text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE seen (id bigint) SERVER streamfilter OPTIONS (%s)', options);
  CREATE TRIGGER zz_seen BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
END $$;
CREATE PROCEDURE drop_filter() LANGUAGE plpgsql AS $$
BEGIN
  DROP FOREIGN TABLE seen CASCADE;
  TRUNCATE events;
END $$;

-- ---- sixty times as many keys ---------------------------------------------------------------------
CALL add_filter($$kind 'bloom', keys '1000', fpr '0.01', seed '1'$$);
CALL add_new_rows(60000);
SELECT 60000 - count(*) <= 660 AS few_lost, fpr_now > 0.9 AS full, lost_estimate BETWEEN 0 AND 660 AS estimated,
  accepted = count(*) AS counted, overfull, passed_overfull BETWEEN 50000 AND 60000 AS passed
FROM events, streamfilter_stats GROUP BY fpr_now, lost_estimate, accepted, overfull, passed_overfull;
-- What a transaction has added itself is known for certain.
INSERT INTO events SELECT -1 FROM generate_series(1, 10);
SELECT count(*) FROM events WHERE id = -1;
-- A repeat passes; asked without adding anything, the filter says what it knows.
INSERT INTO events VALUES (-1);
SELECT count(*) FROM events WHERE id = -1;
SELECT streamfilter_test('seen', -1);
-- Once it is empty, repeats are discarded again.
TRUNCATE seen;
SELECT overfull, fpr_now <= fpr_bound AND fpr_bound <= 0.01 AS keeps FROM streamfilter_stats;
SELECT DISTINCT value FROM streamfilter_metrics WHERE name = 'streamfilter_overfull';
INSERT INTO events SELECT -2 FROM generate_series(1, 2);
INSERT INTO events VALUES (-2);
SELECT count(*) FROM events WHERE id = -2;
CALL drop_filter();

-- ---- as asked for ---------------------------------------------------------------------------------
CALL add_filter($$kind 'bloom', keys '1000', fpr '0.01', seed '1', overfull 'discard'$$);
CALL add_new_rows(60000);
SELECT 60000 - count(*) > 50000 AS most_lost, (SELECT lost_estimate FROM streamfilter_stats) / (60000 - count(*)) BETWEEN 0.97 AND 1.03 AS estimated
FROM events;
-- A reset of the counters does not forget what share of the rows is new.
SELECT streamfilter_stats_reset('seen');
CALL add_new_rows(6000);
SELECT lost_estimate BETWEEN 5800 AND 6000 AS estimated FROM streamfilter_stats;
ALTER FOREIGN TABLE seen OPTIONS (SET overfull 'pass');
INSERT INTO events SELECT i FROM generate_series(-1000, -1) i;
SELECT count(*) FROM events WHERE id < 0;
ALTER FOREIGN TABLE seen OPTIONS (SET overfull 'ignore');
CALL drop_filter();

-- ---- a key's rate was given, and no other promise -------------------------------------------------
CALL add_filter($$kind 'bloom', memory '2kB', k '7', seed '1'$$);
CALL add_new_rows(12000);
SELECT 12000 - count(*) > 6000 AS most_lost FROM events;
CALL drop_filter();

-- ---- other kinds, several slices, places of several bits ------------------------------------------
CREATE TABLE kinds (options text);
INSERT INTO kinds VALUES
  ($$kind 'bloom', keys '1000', fpr '0.01', layout 'blocked', memory '4kB'$$),
  ($$kind 'bloom', keys '1000', fpr '0.01', slices '4', memory '8kB'$$),
  ($$kind 'bloom', keys '1000', fpr '0.01', slices '4', slicing 'vertical', memory '8kB'$$),
  ($$kind 'bloom', keys '1000', fpr '0.01', grow 'density', memory '8kB'$$),
  ($$kind 'bsbf', keys '1000', fpr '0.01', memory '4kB'$$),
  ($$kind 'bsbfsd', keys '1000', fpr '0.01', memory '8kB'$$),
  ($$kind 'rlbsbf', keys '1000', fpr '0.01', memory '8kB'$$),
  ($$kind 'vqf', keys '1000', fpr '0.01', memory '2kB'$$),
  ($$kind 'timer', window '1 hour', keys '1000', fpr '0.01', memory '8kB'$$),
  ($$kind 'timer', window '1000 rows', fpr '0.01', memory '16kB'$$);
CREATE TABLE results (options text, lost bigint, fpr_now float8);
CREATE PROCEDURE try_kinds() LANGUAGE plpgsql AS $$
DECLARE one text;
BEGIN
  FOR one IN SELECT options FROM kinds LOOP
    CALL add_filter(one || $o$, seed '1'$o$);
    CALL add_new_rows(12000);
    INSERT INTO results SELECT one, 12000 - count(*), (SELECT fpr_now FROM streamfilter_stats) FROM events;
    CALL drop_filter();
  END LOOP;
END $$;
SET client_min_messages = error;
CALL try_kinds();
SELECT options, lost <= 132 AS few_lost FROM results WHERE lost > 0;

-- ---- a window of rows moves on by what is discarded, too --------------------------------------------
CREATE PROCEDURE resize_there_and_back() LANGUAGE plpgsql AS $$
DECLARE bytes int;
BEGIN
  FOREACH bytes IN ARRAY '{12288, 16384, 12288, 16384}'::int[] LOOP
    EXECUTE format('ALTER FOREIGN TABLE seen OPTIONS (SET memory %L)', bytes);
    COMMIT;
  END LOOP;
END $$;
CALL add_filter($$kind 'timer', window '1500 rows', memory '16384', fpr '0.01', seed '1', overfull 'discard'$$);
CALL add_new_rows(4800);
CALL resize_there_and_back();
SELECT overfull, fpr_now > 0.5 AS full FROM streamfilter_stats;
CALL add_new_rows(6000);
SELECT overfull, fpr_now < 0.011 AS recovered FROM streamfilter_stats;
CALL drop_filter();

-- ---- what it costs to discard ---------------------------------------------------------------------
-- So many rows a transaction, tenths of them new, the others as one of a transaction before.
CREATE PROCEDURE add_mixed_rows(count int, batch int, tenths int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 0 .. count / batch - 1 LOOP
    INSERT INTO events SELECT CASE WHEN g % 10 < tenths OR i = 0 THEN batch * i + g
      ELSE batch * ((g * 7919 + i * 104729) % i) + g / 10 * 10 + g % tenths END FROM generate_series(0, batch - 1) g;
    COMMIT;
  END LOOP;
END $$;
CREATE TABLE estimates (options text, tenths int, fresh int, lost int, estimate float8);
CREATE PROCEDURE try_estimates() LANGUAGE plpgsql AS $$
DECLARE one record;
BEGIN
  FOR one IN SELECT * FROM unnest(ARRAY[
      $o$kind 'bloom', keys '1000', fpr '0.01'$o$, $o$kind 'bloom', keys '1000', fpr '0.01', slices '4', memory '8kB'$o$,
      $o$kind 'timer', window '1 hour', keys '1000', fpr '0.01', memory '8kB'$o$]) AS options, unnest('{2, 6, 10}'::int[]) AS tenths LOOP
    CALL add_filter(one.options || $o$, seed '1', overfull 'discard'$o$);
    CALL add_mixed_rows(60000, 600, one.tenths);
    INSERT INTO estimates SELECT one.options, one.tenths, fresh, fresh - (SELECT count(DISTINCT id) FROM events), lost_estimate
      FROM streamfilter_stats, (VALUES (600 + 59400 * one.tenths / 10)) v (fresh);
    CALL drop_filter();
  END LOOP;
END $$;
CALL try_estimates();
SELECT count(*), count(*) FILTER (WHERE lost > fresh / 2) AS full FROM estimates;
SELECT * FROM estimates WHERE NOT estimate / lost BETWEEN 0.75 AND 1.25;

-- ---- kinds that forget, derived for fewer keys -----------------------------------------------------
CREATE TABLE forgetful (options text, lost bigint, overfull bool, keeps bool);
CREATE PROCEDURE try_forgetful() LANGUAGE plpgsql AS $$
DECLARE options text;
BEGIN
  FOREACH options IN ARRAY ARRAY[$o$kind 'sqf', keys '20000'$o$, $o$kind 'sqf'$o$, $o$kind 'dsqf', keys '12000'$o$, $o$kind 'dsqf'$o$] LOOP
    CALL add_filter(options || $o$, memory '64kB', fpr '0.01', seed '1'$o$);
    CALL add_new_rows(120000);
    INSERT INTO forgetful SELECT options, 120000 - (SELECT count(*) FROM events), s.overfull,
      s.fpr_bound < 0.0111 AND (s.fpr_now <= s.fpr_bound OR s.overfull) FROM streamfilter_stats s;
    CALL drop_filter();
  END LOOP;
END $$;
CALL try_forgetful();
SELECT options, lost <= 1320 AS few_lost, overfull, keeps FROM forgetful;
DROP TABLE forgetful;
DROP PROCEDURE try_forgetful;

-- ---- trees ----------------------------------------------------------------------------------------
CREATE FOREIGN TABLE root (id bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '4kB', k '7', keys '1000', fpr '0.01', seed '1');
CREATE FOREIGN TABLE seen (id bigint) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '4kB', k '7', keys '1000', fpr '0.01', parent 'root');
CREATE TRIGGER zz_seen BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
CALL add_new_rows(12000);
SELECT 12000 - count(*) <= 132 AS few_lost FROM events;
CALL drop_filter();
DROP FOREIGN TABLE root;
DROP TABLE events, kinds, results, estimates;
DROP PROCEDURE resize_there_and_back, add_new_rows, add_mixed_rows, add_filter, drop_filter, try_kinds, try_estimates;
