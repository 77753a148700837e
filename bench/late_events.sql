-- Readings up to ten minutes out of order, a window of 15 minutes with lateness of 10, against an exact window:
--
--   psql -f bench/late_events.sql [-v events=1000000] DATABASE
--
-- Prints: events; rows kept; late; rows kept by an exact window; rows that an exact window of a tick more keeps and the filter does
-- not; rows that are stored twice within the window. Needs the extension; what it makes is gone afterwards.
\set QUIET on
SELECT :{?events} AS given \gset
\if :given
\else
\set events 200000
\endif
BEGIN;
SET LOCAL client_min_messages = error;
SELECT setseed(0.5) \g /dev/null
-- Three of ten events repeat a key, up to twenty minutes after it. All keys come in two hours.
CREATE TEMP TABLE keys AS
SELECT i AS key, timestamptz '2026-06-01' + i * interval '2 hours' / (:events * 7 / 10) AS at FROM generate_series(1, :events * 7 / 10) i;
CREATE TEMP TABLE stream AS
SELECT key, at, row_number() OVER (ORDER BY at + random() * interval '9.9 minutes') AS number
FROM (SELECT key, at FROM keys
      UNION ALL
      SELECT key, at + random() * interval '20 minutes'
      FROM (SELECT * FROM keys ORDER BY hashint8(key) LIMIT :events * 3 / 10) AS again) AS events;
CREATE TABLE kept_readings (number bigint, key bigint, at timestamptz);
SELECT format('CREATE FOREIGN TABLE seen_readings (key bigint, at timestamptz OPTIONS (role ''time'')) SERVER streamfilter
  OPTIONS (kind ''vqf'', window ''15 minutes'', lateness ''10 minutes'', keys ''%s'', fpr ''0.001'', slices ''1'', max_future ''infinity'')',
  :events * 13 / 100) \gexec
CREATE TRIGGER zz_once BEFORE INSERT ON kept_readings FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_readings', 'key', 'at');
INSERT INTO kept_readings SELECT number, key, at FROM stream ORDER BY number;
-- An event is kept if no event of its key was kept whose time differs by less than so much.
CREATE FUNCTION kept_within(length interval) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE event record; kept timestamptz[]; last bigint := -1;
BEGIN
  FOR event IN SELECT * FROM stream ORDER BY key, number LOOP
    IF event.key <> last THEN kept := '{}'; END IF;
    last := event.key;
    CONTINUE WHEN EXISTS (SELECT FROM unnest(kept) AS its WHERE its - event.at < length AND event.at - its < length);
    kept := kept || event.at;
    RETURN NEXT event.number;
  END LOOP;
END $$;
\pset format aligned
SELECT :events AS events, (SELECT count(*) FROM kept_readings) AS kept,
  (SELECT late FROM streamfilter_stats WHERE filter = 'seen_readings'::regclass) AS late,
  (SELECT count(*) FROM kept_within('15 minutes')) AS exact,
  (SELECT count(*) FROM kept_within(interval '15 minutes' * 9 / 8.0) AS its(number) LEFT JOIN kept_readings USING (number) WHERE kept_readings.key IS NULL) AS lost,
  (SELECT count(*) FROM (SELECT at - lag(at) OVER (PARTITION BY key ORDER BY at) AS apart FROM kept_readings) AS x WHERE apart < '15 minutes') AS twice;
ROLLBACK;
