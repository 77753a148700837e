-- Filters come and go with the transactions that define them.
CREATE FUNCTION state_of(filter regclass) RETURNS TABLE (accepted bigint, in_memory boolean)
LANGUAGE sql AS
'SELECT s.accepted, s.created IS NOT NULL FROM streamfilter_stats s WHERE s.filter = $1';

-- ---- CREATE ---------------------------------------------------------------------------------------
-- Memory is taken at first use.
CREATE FOREIGN TABLE f (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
SELECT * FROM state_of('f');
SELECT streamfilter_seen('f', 1), streamfilter_seen('f', 1);
SELECT * FROM state_of('f');

-- A rolled-back CREATE leaves nothing behind.
BEGIN;
CREATE FOREIGN TABLE g (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
SELECT streamfilter_seen('g', 1), streamfilter_seen('g', 1);
SELECT * FROM state_of('g');
ROLLBACK;
SELECT filter FROM streamfilter_stats;
-- The same by savepoint.
BEGIN;
SAVEPOINT s;
CREATE FOREIGN TABLE g (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
SELECT streamfilter_seen('g', 1);
ROLLBACK TO s;
CREATE FOREIGN TABLE g (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
SELECT streamfilter_seen('g', 1);
COMMIT;
SELECT streamfilter_seen('g', 1);

-- ---- DROP -----------------------------------------------------------------------------------------
BEGIN;
DROP FOREIGN TABLE g;
SELECT streamfilter_seen('g', 1);
ROLLBACK;
SELECT streamfilter_seen('g', 1);
DROP FOREIGN TABLE g;
SELECT streamfilter_seen('g', 1);
-- DROP frees the memory: the reservation of the test server would not hold these together.
DO $$
BEGIN
  FOR i IN 1 .. 20 LOOP
    CREATE FOREIGN TABLE g (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '10MB');
    PERFORM streamfilter_seen('g', 1);
    COMMIT;
    DROP FOREIGN TABLE g;
    COMMIT;
  END LOOP;
END $$;
-- So do DROP OWNED and DROP SCHEMA.
CREATE SCHEMA s;
CREATE FOREIGN TABLE s.g (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '10MB');
SELECT streamfilter_seen('s.g', 1);
DROP SCHEMA s CASCADE;
SELECT filter FROM streamfilter_stats;

-- ---- ALTER ----------------------------------------------------------------------------------------
-- What the state does not depend on keeps it.
ALTER FOREIGN TABLE f RENAME TO f2;
ALTER FOREIGN TABLE f2 RENAME COLUMN id TO key;
ALTER FOREIGN TABLE f2 OPTIONS (ADD nulls 'not distinct');
SELECT streamfilter_test('f2', 1);
-- Other changes take effect at commit, with a warning; a rollback brings the old state back.
BEGIN;
ALTER FOREIGN TABLE f2 OPTIONS (SET memory '128kB', ADD seed '1');
SELECT streamfilter_seen('f2', 1), streamfilter_seen('f2', 1);
SELECT memory FROM streamfilter_stats;
ROLLBACK;
SELECT streamfilter_test('f2', 1), memory FROM streamfilter_stats;
-- The same by savepoint, with a second change.
BEGIN;
ALTER FOREIGN TABLE f2 OPTIONS (SET memory '128kB', ADD seed '1');
SELECT streamfilter_seen('f2', 7);
SAVEPOINT s;
ALTER FOREIGN TABLE f2 OPTIONS (SET memory '256kB', SET seed '2');
SELECT streamfilter_seen('f2', 8);
ROLLBACK TO s;
SELECT streamfilter_test('f2', 1);
SELECT memory FROM streamfilter_stats;
COMMIT;
SELECT streamfilter_test('f2', 1);
SELECT memory FROM streamfilter_stats;
-- The type of a key column counts.
SELECT streamfilter_seen('f2', 1);
ALTER FOREIGN TABLE f2 ALTER COLUMN key TYPE bigint;
SELECT streamfilter_test('f2', 1);
-- ALTER TABLE works alike.
ALTER TABLE f2 OPTIONS (SET memory '64kB');
SELECT memory FROM streamfilter_stats;

-- ---- TRUNCATE -------------------------------------------------------------------------------------
SELECT streamfilter_seen('f2', 1);
TRUNCATE f2;
SELECT streamfilter_test('f2', 1);

-- ---- two-phase commit -----------------------------------------------------------------------------
-- A prepared transaction may define filters; what it does to those that are there: transactions.sql.
BEGIN;
CREATE FOREIGN TABLE g (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
SELECT streamfilter_seen('g', 1);
PREPARE TRANSACTION 'creates';
SELECT filter FROM streamfilter_stats;
ROLLBACK PREPARED 'creates';
SELECT filter FROM streamfilter_stats;
BEGIN;
CREATE FOREIGN TABLE g (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
SELECT streamfilter_seen('g', 1);
PREPARE TRANSACTION 'creates';
COMMIT PREPARED 'creates';
SELECT streamfilter_test('g', 1), streamfilter_test('g', 2);
BEGIN;
DROP FOREIGN TABLE g;
PREPARE TRANSACTION 'drops';
COMMIT PREPARED 'drops';
SELECT filter FROM streamfilter_stats;

-- ---- state that outlives a lock -------------------------------------------------------------------
-- A call site in PL/pgSQL is kept from call to call; the locks behind it are not.
CREATE FUNCTION remember(i int) RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN RETURN streamfilter_seen('f2', i); END $$;
BEGIN;
SAVEPOINT s;
SELECT remember(10);
ROLLBACK TO s;
DROP FOREIGN TABLE f2;
SELECT remember(10);
ROLLBACK;
SELECT remember(11), remember(11);
DROP FOREIGN TABLE f2;
CREATE FOREIGN TABLE f2 (id text) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
\set SHOW_CONTEXT never
SELECT remember(11);
\set SHOW_CONTEXT errors

DROP FUNCTION remember, state_of;
DROP FOREIGN TABLE f2;
-- The extension goes with everything that hangs on it.
CREATE FOREIGN TABLE last (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
SELECT streamfilter_seen('last', 1);
BEGIN;
DROP EXTENSION streamfilter CASCADE;
ROLLBACK;
SELECT streamfilter_seen('last', 1);
DROP FOREIGN TABLE last;
