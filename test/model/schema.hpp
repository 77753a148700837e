// The objects that sessions need in the database, and the settings of the servers.
#pragma once

namespace checker {

inline constexpr const char* kSettings = R"(
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '96MB'
streamfilter.max_in_flight = 1000    # the smallest: some transactions have more
max_prepared_transactions = 20
max_connections = 30
listen_addresses = ''
fsync = off
shared_buffers = '32MB'
max_wal_size = '256MB'
wal_keep_size = '256MB'
wal_retrieve_retry_interval = '100ms'
restart_after_crash = on
autovacuum_naptime = '3s'
deadlock_timeout = '10ms'
log_min_messages = warning
log_min_error_statement = panic
log_line_prefix = '%m [%p] %e '
lc_messages = 'C'
jit = off
)";

// Events of model_block, in order: n5: key 5 was new; r5: it was a repeat; i: the inner block, with
// the last key, is undone; e: an error of the server undid it; o: the outer block is undone.
inline constexpr const char* kFunctions = R"(
CREATE EXTENSION streamfilter;
CREATE TABLE deferred (x int UNIQUE DEFERRABLE INITIALLY DEFERRED);

CREATE FUNCTION model_block(filter text, keys int[], tx bigint, op int, fails int, OUT events text, OUT xid xid8)
LANGUAGE plpgsql AS $$
DECLARE
  one int;
  inserted int;
BEGIN
  events := '';
  xid := pg_current_xact_id();
  BEGIN
    FOREACH one IN ARRAY keys LOOP
      BEGIN
        EXECUTE format('INSERT INTO t_%s VALUES ($1, $2, $3)', filter) USING one, tx, op;
        GET DIAGNOSTICS inserted = ROW_COUNT;
        events := events || CASE inserted WHEN 0 THEN 'r' ELSE 'n' END || one || ' ';
        IF fails & 1 <> 0 AND one & 1 <> 0 THEN
          RAISE division_by_zero;
        END IF;
      EXCEPTION
        WHEN division_by_zero THEN events := events || 'i ';
        WHEN lock_not_available OR deadlock_detected THEN events := events || 'e ';
      END;
    END LOOP;
    IF fails & 2 <> 0 THEN
      RAISE division_by_zero;
    END IF;
  EXCEPTION
    WHEN division_by_zero THEN events := events || 'o ';
  END;
END $$;

-- fpr_now is at most fpr_bound, and that at most fpr where one was asked for, or overfull is true. The numbers are read one
-- after the other, while others change the filter: a second look decides.
CREATE FUNCTION model_rates(filter regclass) RETURNS SETOF void LANGUAGE plpgsql AS $$
DECLARE
  now float8;
  bound float8;
  asked float8;
BEGIN
  FOR look IN 1 .. 3 LOOP
    SELECT fpr_now, fpr_bound, (SELECT option_value::float8 FROM pg_options_to_table(ftoptions) WHERE option_name = 'fpr')
    INTO now, bound, asked FROM pg_foreign_table, _streamfilter.streamfilter_stat(filter)
    WHERE ftrelid = filter AND overfull IS NOT TRUE;
    IF (now > bound OR bound > 1.1 * asked) IS NOT TRUE THEN
      RETURN;
    END IF;
  END LOOP;
  RAISE 'filter % says fpr_now %, fpr_bound %, and is not overfull', filter, now, bound;
END $$;

-- Each key in a transaction of its own.
CREATE PROCEDURE model_steps(filter text, keys int[], tx bigint, fails int)
LANGUAGE plpgsql AS $$
DECLARE
  inserted int;
BEGIN
  FOR i IN 1 .. cardinality(keys) LOOP
    EXECUTE format('INSERT INTO t_%s VALUES ($1, $2, $3)', filter) USING keys[i], tx + i - 1, i;
    GET DIAGNOSTICS inserted = ROW_COUNT;
    IF fails & 1 <> 0 AND keys[i] & 1 <> 0 THEN
      ROLLBACK;
      RAISE NOTICE 'undone % %', i, inserted;
    ELSE
      COMMIT;
      RAISE NOTICE 'step % %', i, inserted;
    END IF;
  END LOOP;
END $$;
)";

}  // namespace checker
