# Transactions of one row and of 1000 rows, with and without a filter; log and memory per key. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

BATCH=1000

transaction_titles() {
	local section
	for section in single batch wal; do
		title $section plain "no filter"
		title $section unlogged "filter unlogged"
		title $section logged "filter logged"
		title $section plain_async "no filter, synchronous_commit off"
		title $section unlogged_async "filter unlogged, synchronous_commit off"
		title $section logged_async "filter logged, synchronous_commit off"
	done
	title memory unlogged "COPY in one transaction, filter unlogged"
	title memory logged "COPY in one transaction, filter logged"
}

transaction_tables() {
	local table
	for table in plain unlogged logged; do
		say "DROP TABLE IF EXISTS t_$table;"
		say "CREATE TABLE t_$table (key bigint, payload text);"
		[ $table = plain ] || filter_sql "f_$table" "$MEMORY" "persistence '$table'"
		[ $table = plain ] || discard_sql "t_$table" "f_$table"
	done | sql
}

transaction_scripts() { # all keys are new
	local table
	for table in plain unlogged logged; do
		cat >"$WORK/tmp/single_$table.sql" <<-END
			\\set key random(1, 1000000000000000)
			INSERT INTO t_$table VALUES (:key, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx');
		END
		cat >"$WORK/tmp/batch_$table.sql" <<-END
			INSERT INTO t_$table SELECT random() * 1e15, repeat('x', 60) FROM generate_series(1, $BATCH);
		END
	done
}

transaction_rounds() { # section
	local round sessions table section=$1
	for ((round = 1; round <= TRANSACTION_ROUNDS; round++)); do
		for sessions in 1 2; do
			sql -c "TRUNCATE t_plain, t_unlogged, t_logged" -c CHECKPOINT
			for table in plain unlogged logged; do
				measure "$section" $table "$sessions" "$round" \
					pgbench_us "$WORK/tmp/${section}_$table.sql" "$sessions" "$PGBENCH_SECONDS"
			done
			for table in plain unlogged logged; do
				measure "$section" ${table}_async "$sessions" "$round" \
					pgbench_us "$WORK/tmp/${section}_$table.sql" "$sessions" "$PGBENCH_SECONDS" "synchronous_commit=off"
			done
		done
	done
}

# Bytes of WAL per transaction of a script, and of the rows in the filters' log, including the 4 bytes that point to
# each. The first half is not counted, because it writes whole pages.
log_bytes() { # script transactions
	local before wal size rows="(SELECT coalesce(sum(pg_column_size(l.*) + 4), 0) FROM _streamfilter.streamfilter_log l)"
	run_transactions "$@"
	before=$(sql -F ' ' -c "SELECT pg_current_wal_insert_lsn(), $rows")
	run_transactions "$@"
	read -r wal size < <(sql -F ' ' -c "SELECT pg_current_wal_insert_lsn() - '${before% *}', $rows - ${before#* }")
	awk -v wal="$wal" -v size="$size" -v n="$2" 'BEGIN { print "sample", wal / n, "bytes"; print "note log", size / n }'
}

run_transactions() { # script transactions
	env PGOPTIONS='-c synchronous_commit=off' "$(pg_bin)/pgbench" -n -M prepared -h "$WORK" -p 5432 -U postgres -f "$1" -t "$2" postgres >/dev/null
}

measure_log_bytes() { # section rows transactions
	local table
	for table in plain unlogged logged; do
		measure wal $table "$2" 1 log_bytes "$WORK/tmp/$1_$table.sql" "$3"
	done
}

# The growth of the backend's memory contexts during the COPY, in the same transaction.
memory_per_key() { # table keys
	local contexts="SELECT sum(total_bytes) FROM pg_backend_memory_contexts"
	sql <<-END | awk -v n="$2" 'NR == 1 { before = $1 } END { print "sample", ($1 - before) / n, "bytes" }'
		BEGIN;
		SELECT FROM streamfilter_test('f_$1', 0::bigint);
		$contexts;
		COPY m_$1 FROM PROGRAM 'seq $2';
		$contexts;
	END
}

measure_memory() {
	local table
	for table in unlogged logged; do
		{
			say "CREATE UNLOGGED TABLE m_$table (key bigint);"
			filter_sql f_$table "$MEMORY" "persistence '$table'"
			discard_sql m_$table f_$table
		} | sql
		measure memory $table "$MANY_KEYS" 1 memory_per_key $table "$MANY_KEYS"
		sql -c "DROP TABLE m_$table"
	done
}

transaction_goals() {
	local sessions suffix at
	for sessions in 1 2; do
		for suffix in "" _async; do
			at="$sessions session(s)$([ -z $suffix ] || printf ', synchronous_commit off')"
			goal 4 "one row, filter logged: x no filter, $at" \
				"$(per_round ratio single $sessions logged$suffix plain$suffix)" most 1.05 x
			goal 7 "one row, filter logged: x unlogged, $at" \
				"$(per_round ratio single $sessions logged$suffix unlogged$suffix)" most 1.05 x
			goal 4 "$BATCH rows, filter logged: us per row more than none, $at" \
				"$(per_round difference batch $sessions logged$suffix plain$suffix "1 / $BATCH")" most 0.4 us
			goal 7 "$BATCH rows, filter logged: x unlogged, $at" \
				"$(per_round ratio batch $sessions logged$suffix unlogged$suffix)" most 1.15 x
		done
	done
	for suffix in unlogged logged; do
		goal 4 "memory per key of $(commas "$MANY_KEYS") in one transaction, filter $suffix" \
			"$(median_of memory $suffix "$MANY_KEYS")" most 64 bytes
	done
}

section_transactions() {
	transaction_titles
	transaction_tables
	transaction_scripts
	set_server "fsync = on"
	measure_log_bytes single 1 2000
	measure_log_bytes batch $BATCH 100
	transaction_rounds single
	transaction_rounds batch
	set_server "fsync = off"
	measure_memory
	transaction_goals
	sql -c "DROP TABLE t_plain, t_unlogged, t_logged" -c "DROP FOREIGN TABLE f_unlogged, f_logged"
}
