-- What a statement has resolved of a trigger serves later ones, until anything that it rests on changes.
SET client_min_messages = warning;
CREATE SCHEMA kept;
CREATE ROLE kept_owner;
CREATE FOREIGN TABLE kept.first (a int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', fpr '0.000001');
CREATE FOREIGN TABLE kept.second (a int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', fpr '0.000001');
GRANT INSERT ON kept.first, kept.second TO kept_owner;
GRANT USAGE ON SCHEMA kept TO kept_owner;
CREATE TABLE kept_rows (a int, b text);
ALTER TABLE kept_rows OWNER TO kept_owner;
CREATE TRIGGER discard BEFORE INSERT ON kept_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('kept.first');
INSERT INTO kept_rows VALUES (1, 'once');
INSERT INTO kept_rows VALUES (1, 'twice');
INSERT INTO kept_rows VALUES (2, 'once');

-- rights of the owner, on the schema and on the filter
REVOKE USAGE ON SCHEMA kept FROM kept_owner;
INSERT INTO kept_rows VALUES (3, 'not allowed');
GRANT USAGE ON SCHEMA kept TO kept_owner;
INSERT INTO kept_rows VALUES (3, 'allowed');
REVOKE INSERT ON kept.first FROM kept_owner;
INSERT INTO kept_rows VALUES (4, 'not allowed');
GRANT INSERT ON kept.first TO kept_owner;
INSERT INTO kept_rows VALUES (4, 'allowed');
INSERT INTO kept_rows VALUES (4, 'twice');

-- a type that has to be cast, another column
ALTER TABLE kept_rows ALTER COLUMN a TYPE smallint;
INSERT INTO kept_rows VALUES (4, 'twice');
INSERT INTO kept_rows VALUES (5, 'once');
ALTER TABLE kept_rows ALTER COLUMN a TYPE int;
INSERT INTO kept_rows VALUES (5, 'twice');
ALTER TABLE kept_rows ADD COLUMN c int;
INSERT INTO kept_rows VALUES (6, 'once', 5);
CREATE OR REPLACE TRIGGER discard BEFORE INSERT ON kept_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('kept.first', 'c');
INSERT INTO kept_rows VALUES (50, 'twice', 5);
CREATE OR REPLACE TRIGGER discard BEFORE INSERT ON kept_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('kept.first');
ALTER TABLE kept_rows DROP COLUMN c;

-- a savepoint, and a transaction that rolls back
BEGIN;
INSERT INTO kept_rows VALUES (7, 'rolled back');
SAVEPOINT s;
INSERT INTO kept_rows VALUES (7, 'twice'), (1 / length(''), 'an error');
ROLLBACK TO s;
INSERT INTO kept_rows VALUES (7, 'twice');
ROLLBACK;
INSERT INTO kept_rows VALUES (7, 'once');

-- mode and definition of the filter, another filter
ALTER FOREIGN TABLE kept.first OPTIONS (ADD mode 'shadow');
INSERT INTO kept_rows VALUES (7, 'let pass');
ALTER FOREIGN TABLE kept.first OPTIONS (DROP mode);
INSERT INTO kept_rows VALUES (7, 'twice');
TRUNCATE kept.first;
INSERT INTO kept_rows VALUES (7, 'after TRUNCATE');
CREATE OR REPLACE TRIGGER discard BEFORE INSERT ON kept_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('kept.second');
INSERT INTO kept_rows VALUES (7, 'another filter');
INSERT INTO kept_rows VALUES (7, 'twice');
ALTER FOREIGN TABLE kept.second RENAME TO third;
INSERT INTO kept_rows VALUES (7, 'twice');

-- a conflict target that was checked for one statement only
CREATE UNIQUE INDEX by_key ON kept_rows (a) WHERE b IS NULL;
CREATE UNIQUE INDEX by_text ON kept_rows (b) WHERE b = 'conflicting';
INSERT INTO kept_rows VALUES (8, 'once') ON CONFLICT DO NOTHING;
DROP INDEX by_key, by_text;
INSERT INTO kept_rows VALUES (8, 'once') ON CONFLICT DO NOTHING;

-- a statement within the statement
CREATE FUNCTION insert_another() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.b = 'nested' THEN INSERT INTO kept_rows VALUES (NEW.a + 100, 'inner'); END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER before_discard BEFORE INSERT ON kept_rows FOR EACH ROW EXECUTE FUNCTION insert_another();
ALTER TRIGGER discard ON kept_rows RENAME TO zz_discard;
INSERT INTO kept_rows VALUES (10, 'nested'), (11, 'nested'), (10, 'nested');
DROP TRIGGER before_discard ON kept_rows;
INSERT INTO kept_rows VALUES (110, 'twice');

-- a table of the same trigger's name, made anew
SELECT * FROM kept_rows ORDER BY a, b;
DROP TABLE kept_rows;
CREATE TABLE kept_rows (a int, b text);
CREATE TRIGGER zz_discard BEFORE INSERT ON kept_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('kept.third');
INSERT INTO kept_rows VALUES (10, 'twice'), (20, 'once');
SELECT * FROM kept_rows;
DROP TABLE kept_rows;
DROP FUNCTION insert_another;
DROP SCHEMA kept CASCADE;
DROP ROLE kept_owner;
