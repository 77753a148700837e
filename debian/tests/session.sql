CREATE EXTENSION streamfilter;
CREATE TABLE clicks (user_id bigint, url text);
CREATE FOREIGN TABLE seen (user_id bigint, url text) SERVER streamfilter OPTIONS (kind 'clq', memory '1MB', fpr '0.001', seed '1');
CREATE TRIGGER zz_discard BEFORE INSERT ON clicks FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
INSERT INTO clicks SELECT i % 1000, '/home' FROM generate_series(1, 10000) AS i;
SELECT count(*) BETWEEN 990 AND 1000 AS each_once FROM clicks \gset
\if :each_once
\else
  DO $$ BEGIN RAISE 'repeats were not discarded'; END $$;
\endif
SELECT extversion FROM pg_extension WHERE extname = 'streamfilter';
SELECT filter, kind, pg_size_pretty(memory) AS memory, accepted, discarded FROM streamfilter_stats;
SELECT count(*) > 20 AS has_metrics FROM streamfilter_metrics WHERE labels->>'filter' = 'public.seen' \gset
\if :has_metrics
\else
  DO $$ BEGIN RAISE 'there are no metrics'; END $$;
\endif
ALTER FOREIGN TABLE seen OPTIONS (SET memory '2MB');
INSERT INTO clicks SELECT i % 1100, '/home' FROM generate_series(1, 10000) AS i;
SELECT count(*) BETWEEN 1085 AND 1100 AS kept FROM clicks \gset
\if :kept
\else
  DO $$ BEGIN RAISE 'a change of size has lost keys'; END $$;
\endif
SELECT filter, pg_size_pretty(memory) AS memory, accepted, discarded FROM streamfilter_stats;
DROP EXTENSION streamfilter CASCADE;
INSERT INTO clicks VALUES (1, '/home');
DROP TABLE clicks;
