-- What a role can take: memory_limit and max_filters of a server, and the time that deep types need.
CREATE SCHEMA quotas;
SET search_path = quotas, public;
CREATE ROLE regress_greedy;
CREATE SERVER narrow FOREIGN DATA WRAPPER streamfilter OPTIONS (max_filters '2', memory_limit '1MB');
CREATE SERVER bad FOREIGN DATA WRAPPER streamfilter OPTIONS (max_filters 'some');
CREATE SERVER bad FOREIGN DATA WRAPPER streamfilter OPTIONS (max_filters '-1');
CREATE SERVER bad FOREIGN DATA WRAPPER streamfilter OPTIONS (max_filters '1e9999');
GRANT USAGE ON FOREIGN SERVER narrow TO regress_greedy;
GRANT USAGE, CREATE ON SCHEMA quotas TO regress_greedy;

SET ROLE regress_greedy;
CREATE FOREIGN TABLE one (id int) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
CREATE FOREIGN TABLE two (id int) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
CREATE FOREIGN TABLE three (id int) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
ALTER FOREIGN TABLE two OPTIONS (SET k '3');
SELECT streamfilter_seen('one', 1), streamfilter_seen('two', 1);
-- Its place is there again when one is dropped, also within the transaction.
BEGIN;
DROP FOREIGN TABLE two;
CREATE FOREIGN TABLE three (id int) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
COMMIT;
SELECT streamfilter_seen('three', 1);
-- A new state of the same filter takes no second place.
BEGIN;
ALTER FOREIGN TABLE three OPTIONS (SET k '3');
SELECT streamfilter_seen('three', 1), streamfilter_seen('three', 1);
COMMIT;
SELECT streamfilter_seen('three', 1);
RESET ROLE;

-- The owner of the server may go below what is there: that stays, and nothing is added.
ALTER SERVER narrow OPTIONS (SET max_filters '1');
SELECT streamfilter_seen('one', 1), streamfilter_seen('three', 1);
ALTER FOREIGN TABLE one OPTIONS (ADD conflict 'admit');
SET ROLE regress_greedy;
CREATE FOREIGN TABLE four (id int) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
RESET ROLE;
-- What gets past the check of the definition is stopped where it would take its place.
ALTER SERVER narrow OPTIONS (SET max_filters '3');
ALTER EVENT TRIGGER streamfilter_check_ddl DISABLE;
SET ROLE regress_greedy;
CREATE FOREIGN TABLE four (id int) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
CREATE FOREIGN TABLE five (id int) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
RESET ROLE;
ALTER EVENT TRIGGER streamfilter_check_ddl ENABLE;
SELECT streamfilter_seen('four', 1);
SELECT streamfilter_seen('five', 1);
ALTER SERVER narrow OPTIONS (SET max_filters '0');
SELECT streamfilter_seen('five', 1);
ALTER SERVER narrow OPTIONS (DROP max_filters);
SELECT streamfilter_seen('five', 1);

-- A type in a type in a type: each is looked at once, and what takes long can be cancelled.
DO $$
BEGIN
  CREATE TYPE deep0 AS (a int);
  FOR i IN 1..1000 LOOP
    EXECUTE format('CREATE TYPE deep%s AS (a deep%s)', i, i - 1);
  END LOOP;
  CREATE TYPE wide0 AS (a int, b int);
  FOR i IN 1..14 LOOP
    EXECUTE format('CREATE TYPE wide%s AS (a wide%s, b wide%s)', i, i - 1, i - 1);
  END LOOP;
END $$;
SET statement_timeout = '10s';
CREATE FOREIGN TABLE deep (k deep1000) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
CREATE FOREIGN TABLE wide (k wide14) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
SELECT streamfilter_seen('deep', ROW(NULL)::deep1000), streamfilter_seen('deep', ROW(NULL)::deep1000);
SELECT streamfilter_seen('wide', ROW(ROW(NULL, NULL), NULL)::wide14),
       streamfilter_seen('wide', ROW(ROW(NULL, NULL), NULL)::wide14),
       streamfilter_seen('wide', ROW(NULL, ROW(NULL, NULL))::wide14);
-- A value that is as deep.
DO $$
DECLARE
  value text := 'ROW(1)::deep0';
  found boolean;
BEGIN
  FOR i IN 1..200 LOOP value := format('ROW(%s)::deep%s', value, i); END LOOP;
  EXECUTE format('SELECT streamfilter_hash(%s) = streamfilter_hash(%1$s)', value) INTO found;
  RAISE NOTICE 'the same hash: %', found;
END $$;
RESET statement_timeout;
-- What cannot be hashed is found wherever it is, and named.
CREATE TYPE has_json AS (a wide14, b json[]);
CREATE FOREIGN TABLE bad (k has_json) SERVER narrow OPTIONS (kind 'bloom', memory '1kB', k '2');
SELECT streamfilter_hash(ROW(1, ROW(2, NULL::json)));
SELECT streamfilter_hash(ROW(1, NULL::has_json));

SET client_min_messages = warning;
DROP SCHEMA quotas CASCADE;
DROP SERVER narrow;
DROP ROLE regress_greedy;
