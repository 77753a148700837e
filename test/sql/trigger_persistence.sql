-- A trigger whose table and filter do not share their fate in a crash is warned of.
CREATE FOREIGN TABLE kept (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '5');
CREATE FOREIGN TABLE loose (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '5', persistence 'unlogged');
CREATE TABLE logged (id int, again boolean);
CREATE UNLOGGED TABLE unlogged (id int, again boolean);
CREATE TEMPORARY TABLE passing (id int, again boolean);

CREATE TRIGGER zz_filter BEFORE INSERT ON logged FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('kept');
CREATE TRIGGER zz_filter BEFORE INSERT ON unlogged FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('kept', 'again');
CREATE TRIGGER zz_filter BEFORE INSERT ON passing FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('public.kept');
DROP TRIGGER zz_filter ON logged;
DROP TRIGGER zz_filter ON unlogged;
DROP TRIGGER zz_filter ON passing;
CREATE TRIGGER zz_filter BEFORE INSERT ON logged FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('loose');
CREATE TRIGGER zz_filter BEFORE INSERT ON unlogged FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('loose');
CREATE TRIGGER zz_filter BEFORE INSERT ON passing FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('public.loose');

-- What the hint says helps; ALTER is warned of, too.
ALTER FOREIGN TABLE loose OPTIONS (SET persistence 'logged');
DROP TRIGGER zz_filter ON unlogged;
DROP TRIGGER zz_filter ON passing;
ALTER TABLE logged SET UNLOGGED;
ALTER FOREIGN TABLE loose OPTIONS (SET persistence 'unlogged');
ALTER TABLE logged SET LOGGED;
ALTER TABLE logged ADD COLUMN more int;
ALTER FOREIGN TABLE loose OPTIONS (ADD conflict 'admit');

-- Partitions have the rows.
CREATE TABLE parts (id int) PARTITION BY LIST (id);
CREATE TABLE one PARTITION OF parts FOR VALUES IN (1);
CREATE TRIGGER zz_filter BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('kept');
CREATE UNLOGGED TABLE two (id int);
ALTER TABLE parts ATTACH PARTITION two FOR VALUES IN (2);

DROP TABLE logged, unlogged, passing, parts;
DROP FOREIGN TABLE kept, loose;
