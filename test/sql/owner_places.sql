--
-- Whose code runs in which place: a domain, a cast, operators with a hash function, and expressions of an index. All are Mallory's, as
-- are filters and tables; a superuser calls.
--
SET client_min_messages = warning;
CREATE ROLE streamfilter_mallory;
CREATE ROLE streamfilter_eve;
CREATE SCHEMA places AUTHORIZATION streamfilter_mallory;
GRANT USAGE ON FOREIGN SERVER streamfilter TO streamfilter_mallory, streamfilter_eve;
SET search_path = places, public;
SET SESSION AUTHORIZATION streamfilter_mallory;
CREATE TABLE ran (what text, as_role name);
CREATE FUNCTION say(what text) RETURNS boolean LANGUAGE plpgsql SET search_path = places
AS $$ BEGIN INSERT INTO ran VALUES (what, current_user); RETURN true; END $$;
CREATE FUNCTION say_constant(what text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE
AS $$ BEGIN PERFORM places.say(what); RETURN true; END $$;
CREATE FUNCTION say_int(what text, i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM places.say(what); RETURN i; END $$;
CREATE DOMAIN checked AS int CONSTRAINT a CHECK (say('check')) CHECK (say_constant('constant'));
CREATE TYPE pair AS (a int, b text);
CREATE FUNCTION to_pair(int) RETURNS pair LANGUAGE plpgsql AS $$ BEGIN PERFORM places.say('cast'); RETURN ROW($1, 'x')::places.pair; END $$;
CREATE CAST (int AS pair) WITH FUNCTION to_pair(int) AS IMPLICIT;
RESET SESSION AUTHORIZATION;
-- Base types and classes of operators need a superuser, who lets Mallory write their functions.
CREATE TYPE number;
CREATE FUNCTION number_in(cstring) RETURNS number LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
CREATE FUNCTION number_out(number) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
CREATE TYPE number (INPUT = number_in, OUTPUT = number_out, LIKE = int8);
CREATE FUNCTION number_eq(number, number) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT
AS $$ BEGIN PERFORM places.say('operator'); RETURN $1::text = $2::text; END $$;
CREATE FUNCTION number_lt(number, number) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT
AS $$ BEGIN PERFORM places.say('operator'); RETURN $1::text < $2::text; END $$;
CREATE FUNCTION number_cmp(number, number) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT
AS $$ BEGIN PERFORM places.say('operator'); RETURN bttextcmp($1::text, $2::text); END $$;
CREATE FUNCTION number_hash(number) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint8';
CREATE FUNCTION number_hash_extended(number, bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
AS $$ BEGIN PERFORM places.say('hash'); RETURN hashtextextended($1::text, $2); END $$;
CREATE OPERATOR < (LEFTARG = number, RIGHTARG = number, FUNCTION = number_lt);
CREATE OPERATOR = (LEFTARG = number, RIGHTARG = number, FUNCTION = number_eq, COMMUTATOR = =, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
CREATE OPERATOR CLASS number_order DEFAULT FOR TYPE number USING btree AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 number_cmp(number, number);
CREATE OPERATOR CLASS number_hashes DEFAULT FOR TYPE number USING hash AS
  OPERATOR 1 =, FUNCTION 1 number_hash(number), FUNCTION 2 number_hash_extended(number, bigint);
ALTER TYPE number OWNER TO streamfilter_mallory;

-- For each kind of code a filter f, a table t, its repeats q, and p, a table without filter
SET SESSION AUTHORIZATION streamfilter_mallory;
CREATE TABLE codes (code text, filter_type text, table_type text, key text);
INSERT INTO codes VALUES ('domain', 'checked', 'int', '1'), ('cast', 'pair', 'int', '(1,x)'), ('operators', 'number', 'number', '1'), ('index', 'int', 'int', '1');
SELECT format('CREATE FOREIGN TABLE f_%1$s (k %2$s) SERVER streamfilter OPTIONS (kind %4$L, memory %5$L);
  CREATE TABLE t_%1$s (k %3$s, x int); CREATE TABLE q_%1$s (LIKE t_%1$s); CREATE TABLE p_%1$s (LIKE t_%1$s);
  CREATE TRIGGER zz BEFORE INSERT ON t_%1$s FOR EACH ROW EXECUTE FUNCTION streamfilter_divert(%6$L, %7$L, %8$L)',
  code, filter_type, table_type, 'lru', '64kB', 'f_' || code, 'q_' || code, 'k') FROM codes \gexec
SELECT format('CREATE INDEX ON %1$s (say_int(%2$L, k)) WHERE say_constant(%3$L); CREATE UNIQUE INDEX ON %1$s (k) WHERE say_constant(%3$L);
  CREATE STATISTICS %1$s_numbers ON say_int(%2$L, k), x FROM %1$s', name, 'expression', 'constant') FROM unnest('{t_index,p_index}'::text[]) name \gexec
GRANT ALL ON SCHEMA places TO PUBLIC;
GRANT ALL ON ALL TABLES IN SCHEMA places TO PUBLIC;
RESET SESSION AUTHORIZATION;

-- Runs a statement for each kind of code, and notes what has run of it, and as whom. [f], [t], [q] and [p] stand for relations,
-- [1] to [9] for keys of the table's type, [key] for one of the filter's.
CREATE TABLE found (number int GENERATED ALWAYS AS IDENTITY, place text, code text, who text);
CREATE PROCEDURE place(place text, statement text) LANGUAGE plpgsql AS $$
DECLARE
  c record;
  made text;
  failed text;
BEGIN
  FOR c IN SELECT * FROM codes LOOP
    made := regexp_replace(statement, '\[([ftqp])\]', '\1_' || c.code, 'g');
    made := regexp_replace(made, '\[(\d+)\]', $a$'\1'::$a$ || c.table_type, 'g');
    made := replace(made, '[key]', quote_literal(c.key) || '::' || c.filter_type);
    -- The session is as one that has not used the domain yet.
    ALTER DOMAIN checked RENAME CONSTRAINT a TO b;
    ALTER DOMAIN checked RENAME CONSTRAINT b TO a;
    DELETE FROM ran;
    failed := NULL;
    BEGIN
      EXECUTE made;
    EXCEPTION WHEN OTHERS THEN
      failed := SQLSTATE;
    END;
    INSERT INTO found (place, code, who)
      SELECT place, c.code, coalesce(failed, string_agg(DISTINCT r.what || ': ' ||
        CASE r.as_role WHEN session_user THEN 'caller' WHEN 'streamfilter_mallory' THEN 'owner' ELSE substr(r.as_role, 14) END, ', ')) FROM ran r;
  END LOOP;
END $$;

SET client_min_messages = error;
-- In parentheses: what PostgreSQL does of its own, for a table without a filter; there and in queries of the caller such code is the caller's.
CALL place('(SELECT)', $q$SELECT FROM [p] WHERE k = [1]$q$);
CALL place('(INSERT)', $q$INSERT INTO [p] VALUES ([1])$q$);
CALL place('(ANALYZE)', $q$ANALYZE [p]$q$);
CALL place('(EXPLAIN SELECT)', $q$EXPLAIN SELECT FROM [p] WHERE k = [1]$q$);
CALL place('(EXPLAIN of a key)', $q$EXPLAIN SELECT [key]$q$);
CALL place('(CREATE TRIGGER)', $q$CREATE TRIGGER zz BEFORE INSERT ON [p] FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger(); DROP TRIGGER zz ON [p]$q$);

-- Rows
CALL place('INSERT', $q$INSERT INTO [t] VALUES ([1]), ([1]), ([2])$q$);
CALL place('INSERT of many rows', $q$INSERT INTO [t] SELECT [3] FROM generate_series(1, 300)$q$);
CALL place('ON CONFLICT', $q$INSERT INTO [t] VALUES ([1]) ON CONFLICT DO NOTHING$q$);
CALL place('INSERT INTO filter', $q$INSERT INTO [f] VALUES ([3])$q$);
CALL place('DELETE FROM filter', $q$DELETE FROM [f] WHERE k = [key]$q$);
CALL place('seen', $q$SELECT streamfilter_seen('[f]', [4])$q$);
CALL place('test, slice', $q$SELECT streamfilter_test('[f]', [4]), streamfilter_slice('[f]', [4])$q$);
CALL place('batch scan', $q$CREATE TABLE new AS SELECT k FROM [t] WHERE NOT streamfilter_seen('[f]', k); DROP TABLE new$q$);

-- Settling and warming
CALL place('settle', $q$SELECT FROM streamfilter_settle('[q]', '[t]')$q$);
CALL place('(INSERT, repeats)', $q$INSERT INTO [q] VALUES ([1]), ([5])$q$);
CALL place('settle, duplicates', $q$SELECT FROM streamfilter_settle('[q]', '[t]', duplicates => 'delete')$q$);
CALL place('warm', $q$SELECT streamfilter_warm('[f]', '[t]')$q$);

-- Evaluation
CALL place('evaluate', $q$SELECT FROM streamfilter_evaluate('SELECT k FROM [t]', '{lru(memory=1kB)}')$q$);
CALL place('evaluate, key of the filter', $q$SELECT FROM streamfilter_evaluate($s$SELECT [key] FROM generate_series(1, 2)$s$, '{lru(memory=1kB)}')$q$);
CALL place('profile', $q$SELECT FROM streamfilter_profile('SELECT k FROM [t]', '{lru(memory=1kB)}', 'lag')$q$);
CALL place('advise', $q$SELECT FROM streamfilter_advise('SELECT k FROM [t]', '64kB', 0.01)$q$);
CALL place('distinct', $q$SELECT FROM streamfilter_distinct(NULL::[t], 'SELECT * FROM [t]', 'lru(memory=1kB)', '{k}')$q$);
CALL place('aggregates', $q$SELECT approx_count_distinct(k), streamfilter_agg(k, 'lru(memory=1kB)') FROM [t]$q$);

-- Maintenance
CALL place('ANALYZE', $q$ANALYZE [t]$q$);
CALL place('ANALYZE of filter', $q$ANALYZE [f]$q$);
CALL place('REINDEX', $q$REINDEX TABLE [t]$q$);
CALL place('save', $q$SELECT streamfilter_save('[f]')$q$);
CALL place('ALTER filter', $q$ALTER FOREIGN TABLE [f] OPTIONS (SET memory '128kB')$q$);
CALL place('views', $q$SELECT FROM streamfilter_stats; SELECT FROM streamfilter_tuning; SELECT FROM streamfilter_triggers; SELECT FROM streamfilter_metrics$q$);
CALL place('merge', $q$SELECT streamfilter_merge('[f]', streamfilter_value('[f]'))$q$);
CALL place('import', $q$SELECT streamfilter_import('[f]', 0, streamfilter_export('[f]', 0))$q$);
CALL place('CREATE TRIGGER', $q$CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON [t] FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('[f]', '[q]', 'k')$q$);
CALL place('RENAME', $q$ALTER FOREIGN TABLE [f] RENAME COLUMN k TO l; ALTER FOREIGN TABLE [f] RENAME COLUMN l TO k$q$);
CALL place('OWNER TO, as Eve', $q$ALTER FOREIGN TABLE [f] OWNER TO streamfilter_eve; ALTER FOREIGN TABLE [f] OWNER TO streamfilter_mallory$q$);
CALL place('forget_saved', $q$SELECT streamfilter_forget_saved('[f]')$q$);

-- EXPLAIN, and the planner's estimates, now that there are statistics
CALL place('EXPLAIN INSERT', $q$EXPLAIN (VERBOSE) INSERT INTO [t] SELECT [6] FROM generate_series(1, 3)$q$);
CALL place('EXPLAIN ANALYZE INSERT', $q$EXPLAIN (ANALYZE, VERBOSE) INSERT INTO [t] SELECT [6] FROM generate_series(1, 3)$q$);
CALL place('EXPLAIN seen', $q$EXPLAIN (VERBOSE) SELECT FROM generate_series(1, 3) WHERE NOT streamfilter_seen('[f]', [1])$q$);
CALL place('EXPLAIN test', $q$EXPLAIN (VERBOSE) SELECT FROM generate_series(1, 3) WHERE streamfilter_test('[f]', [1])$q$);
CALL place('EXPLAIN seen, test of columns', $q$EXPLAIN (VERBOSE) SELECT FROM [t] WHERE NOT streamfilter_seen('[f]', k) AND NOT streamfilter_test('[f]', k)$q$);
CALL place('EXPLAIN look-up', $q$EXPLAIN (VERBOSE) SELECT FROM [f] WHERE k = [key]$q$);
CALL place('EXPLAIN ANALYZE look-up', $q$EXPLAIN (ANALYZE, VERBOSE) SELECT FROM [f] WHERE k = [key]$q$);
CALL place('EXPLAIN join', $q$EXPLAIN (VERBOSE) SELECT FROM [t] t WHERE NOT EXISTS (SELECT FROM [f] f WHERE f.k = t.k)$q$);
CALL place('EXPLAIN INSERT INTO filter', $q$EXPLAIN (VERBOSE) INSERT INTO [f] VALUES ([7])$q$);
CALL place('EXPLAIN DELETE', $q$EXPLAIN (VERBOSE) DELETE FROM [f] WHERE k = [key]$q$);
CALL place('EXPLAIN settle, warm', $q$EXPLAIN (VERBOSE) SELECT streamfilter_settle('[q]', '[t]'), streamfilter_warm('[f]', '[t]')$q$);

CALL place('ALTER TABLE', $q$ALTER TABLE [q] ADD y int; ALTER TABLE [t] ADD y int$q$);
CALL place('TRUNCATE', $q$TRUNCATE [f]$q$);
CALL place('DROP', $q$DROP TABLE [t] CASCADE; DROP FOREIGN TABLE [f] CASCADE$q$);

SELECT place, max(who) FILTER (WHERE code = 'domain') AS domain, max(who) FILTER (WHERE code = 'cast') AS cast,
  max(who) FILTER (WHERE code = 'operators') AS operators, max(who) FILTER (WHERE code = 'index') AS index
FROM found GROUP BY place ORDER BY min(number);

RESET search_path;
DROP SCHEMA places CASCADE;
REVOKE ALL ON FOREIGN SERVER streamfilter FROM streamfilter_mallory, streamfilter_eve;
DROP ROLE streamfilter_mallory, streamfilter_eve;
