# What bench/instructions.sh counts. A case has a title, a number of rows (or statements) that its instructions are divided by,
# settings, and statements, which come twice: for a few rows, to warm up caches, then for all of them. Sourced.
# shellcheck shell=bash

# shellcheck disable=SC2034 # for the caller
CASES=(scan plain all trigger_off seen seen_alone seen_rows seen_text seen_columns trigger trigger_two trigger_rows trigger_beyond seen_beyond copy copy_trigger
	copy_rows copy_new copy_new_trigger copy_binary lists lists_trigger into distinct small_plain small_trigger
	window_trigger window_seen known_trigger known_seen values_100_plain values_100 values_10_plain values_10
	returning_plain returning block_plain block single_plain single_unlogged single_logged
	select_1 update delete single_update single_delete
	nothing_plain nothing nothing_new_plain nothing_new refused_plain refused upsert_plain upsert two_filters later_plain later
	ten_nothing_plain ten_nothing ten_upsert_plain ten_upsert ten_filters ten_later_plain ten_later)

# The first commit of bench/instructions.base refuses their statements: it has no figures of them.
# shellcheck disable=SC2034 # for the caller
REFUSED_AT_FIRST="nothing nothing_new refused upsert two_filters later ten_nothing ten_upsert ten_filters ten_later"

ROWS=20000
SINGLES=500 # statements or transactions of one row: they take more
OPTIONS="memory '16MB', fpr '0.01', seed '1'"

title() { # case
	case $1 in
	scan) say "scan of the source" ;;
	plain) say "INSERT, distinct rows only" ;;
	all) say "INSERT, all rows" ;;
	trigger_off) say "INSERT, all rows, trigger switched off" ;;
	seen) say "INSERT WHERE NOT streamfilter_seen" ;;
	seen_alone) say "the same, batch_scan off" ;;
	seen_rows | trigger_rows | copy_rows) say "the same, batch_insert off" ;;
	seen_text) say "INSERT WHERE NOT seen, key of text" ;;
	seen_columns) say "INSERT WHERE NOT seen, key of bigint, text" ;;
	trigger_beyond) say "the same in a block, beyond max_in_flight" ;;
	seen_beyond) say "INSERT WHERE NOT seen, beyond max_in_flight" ;;
	trigger) say "INSERT, trigger streamfilter_discard" ;;
	trigger_two) say "the same, clq with two lines" ;;
	copy) say "COPY, all rows" ;;
	copy_trigger) say "COPY, trigger streamfilter_discard" ;;
	copy_new) say "COPY, distinct rows only" ;;
	copy_new_trigger) say "the same, trigger streamfilter_discard" ;;
	copy_binary) say "COPY (FORMAT binary), trigger" ;;
	lists) say "INSERT of lists of 1000 rows, all rows" ;;
	lists_trigger) say "the same, trigger streamfilter_discard" ;;
	into) say "INSERT INTO a filter" ;;
	distinct) say "streamfilter_distinct" ;;
	small_plain) say "transactions of 1000 new rows" ;;
	small_trigger | block | nothing | nothing_new | refused | upsert | ten_nothing | ten_upsert)
		say "the same, trigger streamfilter_discard"
		;;
	window_trigger) say "INSERT, trigger, window of time" ;;
	window_seen) say "INSERT WHERE NOT seen, window of time" ;;
	known_trigger) say "INSERT, trigger, number of keys known" ;;
	known_seen) say "INSERT WHERE NOT seen, number of keys known" ;;
	values_*_plain) say "INSERT of VALUES of $(list_length "$1")" ;;
	values_* | returning) say "the same, trigger streamfilter_discard" ;;
	returning_plain) say "INSERT of VALUES of 10 RETURNING" ;;
	block_plain) say "a block of INSERTs of one new row" ;;
	single_plain) say "transactions of one new row" ;;
	single_unlogged) say "the same, trigger, filter unlogged" ;;
	single_logged) say "the same, trigger, filter logged" ;;
	select_1) say "SELECT 1, a statement" ;;
	update) say "UPDATE of a plain table" ;;
	delete) say "DELETE from a plain table" ;;
	single_update) say "UPDATE of a plain table, one row each" ;;
	single_delete) say "DELETE from a plain table, one row each" ;;
	nothing_plain) say "INSERT ON CONFLICT DO NOTHING, all rows" ;;
	nothing_new_plain) say "ON CONFLICT DO NOTHING, all rows new" ;;
	refused_plain) say "another index refuses all rows" ;;
	upsert_plain) say "INSERT ON CONFLICT DO UPDATE, half exist" ;;
	two_filters) say "INSERT, two filters" ;;
	later_plain) say "INSERT, trigger in PL/pgSQL" ;;
	later | ten_later) say "the same, after streamfilter_discard" ;;
	ten_nothing_plain) say "VALUES of 10 ON CONFLICT DO NOTHING" ;;
	ten_upsert_plain) say "VALUES of 10 ON CONFLICT DO UPDATE" ;;
	ten_filters) say "VALUES of 10, two filters" ;;
	ten_later_plain) say "VALUES of 10, trigger in PL/pgSQL" ;;
	esac
}

list_length() { # case
	case $1 in
	lists*) say 1000 ;;
	values_100*) say 100 ;;
	*) say 10 ;;
	esac
}

rows_of() { # case
	case $1 in
	single_* | block* | select_1) say "$SINGLES" ;;
	values_* | returning* | ten_*) say $((ROWS * $(list_length "$1") / 1000)) ;; # as many statements as there are lists of 1000 rows
	*) say "$ROWS" ;;
	esac
}

# A table NAME with a trigger and a filter seen_NAME.
discarding_table() { # name options
	say "CREATE TABLE $1 (LIKE source_all);"
	discard_repeats "$1" "seen_$1" "$2"
}

discard_repeats() { # table filter options
	cat <<-END
		CREATE FOREIGN TABLE $2 (key bigint) SERVER streamfilter OPTIONS ($3);
		CREATE TRIGGER $2 BEFORE INSERT ON $1 FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$2');
	END
}

# Tables for what becomes of a row after the trigger, each without a filter and, as NAME_seen, behind one: with a surrogate key
# and an index on the filter's key, the same with half of the keys that come, with an index that lets one row in, with a
# later trigger. Then one behind two filters.
fate_tables() {
	local surrogate="id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY" suffix table filter="kind 'clq', $OPTIONS"
	say "CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
	for suffix in '' _seen; do
		cat <<-END
			CREATE TABLE ignoring$suffix (LIKE source_all, $surrogate, UNIQUE (key));
			CREATE TABLE upserted$suffix (LIKE ignoring INCLUDING ALL);
			INSERT INTO upserted$suffix SELECT * FROM kept_all WHERE key % 2 = 0;
			CREATE TABLE refusing$suffix (LIKE source_all, $surrogate, UNIQUE (payload));
			CREATE TABLE changed$suffix (LIKE source_all);
			CREATE TRIGGER zz BEFORE INSERT ON changed$suffix FOR EACH ROW EXECUTE FUNCTION later();
		END
	done
	for table in ignoring upserted refusing changed; do discard_repeats ${table}_seen seen_$table "$filter"; done
	discarding_table twice "$filter"
	discard_repeats twice seen_again "$filter"
}

# source_all has 49 % distinct rows; the few rows of the warm-up are others.
create_tables() {
	create_server
	sql <<-END
		SET client_min_messages = error;
		CREATE TABLE source_all AS SELECT hashint8extended(abs(hashint8extended(i, 1) % ($ROWS / 1.6485)::bigint), 0) AS key,
		    repeat('x', 60) AS payload FROM generate_series(1, $ROWS) i;
		CREATE TABLE source_few AS SELECT -i::bigint AS key, repeat('x', 60) AS payload FROM generate_series(1, 10) i;
		$(for size in all few; do
			say "CREATE TABLE distinct_$size AS SELECT DISTINCT ON (key) * FROM source_$size;"
			say "CREATE TABLE named_$size AS SELECT key, 'user ' || key AS name, payload FROM source_$size;"
			say "CREATE TABLE kept_$size AS SELECT row_number() OVER () AS key, payload FROM source_$size;"
			say "ALTER TABLE kept_$size ADD PRIMARY KEY (key);"
		done)
		CREATE TABLE arrivals (LIKE source_all);
		CREATE TABLE arrivals_named (LIKE named_all);
		$(discarding_table discarding "kind 'clq', $OPTIONS")
		$(discarding_table unlogged "kind 'clq', $OPTIONS, persistence 'unlogged'")
		$(discarding_table two "kind 'clq', $OPTIONS, lines '2'")
		$(discarding_table recent "$OPTIONS, window '30 days'")
		$(discarding_table known "kind 'bloom', keys '$ROWS', fpr '0.01', seed '1'")
		$(fate_tables)
		CREATE FOREIGN TABLE seen_text (name text) SERVER streamfilter OPTIONS (kind 'clq', $OPTIONS);
		CREATE FOREIGN TABLE seen_columns (key bigint, name text) SERVER streamfilter OPTIONS (kind 'clq', $OPTIONS);
		VACUUM (FREEZE, ANALYZE);
	END
	write_files
	stop_server
}

write_files() {
	local size length
	for size in all few; do
		sql -c "COPY source_$size TO '$WORK/tmp/source_$size.copy'" -c "COPY distinct_$size TO '$WORK/tmp/distinct_$size.copy'" \
			-c "COPY source_$size TO '$WORK/tmp/source_$size.binary' (FORMAT binary)"
		for length in 10 100 1000; do write_lists $size $length; done
	done
}

write_lists() { # all|few length: INSERTs of so many rows each
	local limit=$((ROWS * $2 / 1000))
	sql >"$WORK/tmp/lists_$2_$1.sql" <<-END
		SELECT 'INSERT INTO arrivals VALUES ' || string_agg(format('(%s, %L)', key, payload), ', ' ORDER BY n)
		  FROM (SELECT *, row_number() OVER () - 1 AS n FROM source_$1 LIMIT $limit) AS numbered GROUP BY n / $2 ORDER BY n / $2
	END
}

options() { # case: of the server, a word a line
	printf '%s\n' -c track_counts=off # their flushes would depend on the time
	case $1 in *_beyond) printf '%s\n' -c streamfilter.max_in_flight=1000 ;; esac
}

settings() { # case
	case $1 in
	*_rows) say "SET streamfilter.batch_insert = off" ;;
	seen_alone) say "SET streamfilter.batch_scan = off" ;;
	trigger_off) say "SET streamfilter.enabled = off" ;;
	esac
}

statements() { # case all|few: one a line
	case $1 in
	scan) say "SELECT count(*) FROM source_$2" ;;
	plain) say "INSERT INTO arrivals SELECT * FROM distinct_$2" ;;
	all) say "INSERT INTO arrivals SELECT * FROM source_$2" ;;
	seen_text) say "INSERT INTO arrivals_named SELECT * FROM named_$2 WHERE NOT streamfilter_seen('seen_text', name)" ;;
	seen_columns)
		say "INSERT INTO arrivals_named SELECT * FROM named_$2 WHERE NOT streamfilter_seen('seen_columns', key, name)"
		;;
	seen*) say "INSERT INTO arrivals SELECT * FROM source_$2 WHERE NOT streamfilter_seen('seen_discarding', key)" ;;
	window_seen) say "INSERT INTO arrivals SELECT * FROM source_$2 WHERE NOT streamfilter_seen('seen_recent', key)" ;;
	known_seen) say "INSERT INTO arrivals SELECT * FROM source_$2 WHERE NOT streamfilter_seen('seen_known', key)" ;;
	trigger_two) say "INSERT INTO two SELECT * FROM source_$2" ;;
	window_trigger) say "INSERT INTO recent SELECT * FROM source_$2" ;;
	known_trigger) say "INSERT INTO known SELECT * FROM source_$2" ;;
	trigger_beyond) printf '%s\n' BEGIN "INSERT INTO discarding SELECT * FROM source_$2" COMMIT ;;
	trigger*) say "INSERT INTO discarding SELECT * FROM source_$2" ;;
	copy) say "COPY arrivals FROM '$WORK/tmp/source_$2.copy'" ;;
	copy_new) say "COPY arrivals FROM '$WORK/tmp/distinct_$2.copy'" ;;
	copy_new_trigger) say "COPY discarding FROM '$WORK/tmp/distinct_$2.copy'" ;;
	copy_binary) say "COPY discarding FROM '$WORK/tmp/source_$2.binary' (FORMAT binary)" ;;
	copy_*) say "COPY discarding FROM '$WORK/tmp/source_$2.copy'" ;;
	lists | values_*_plain) cat "$WORK/tmp/lists_$(list_length "$1")_$2.sql" ;;
	lists_trigger | values_*) sed 's/arrivals/discarding/' "$WORK/tmp/lists_$(list_length "$1")_$2.sql" ;;
	returning_plain) sed 's/$/ RETURNING key/' "$WORK/tmp/lists_10_$2.sql" ;;
	returning) sed 's/arrivals/discarding/; s/$/ RETURNING key/' "$WORK/tmp/lists_10_$2.sql" ;;
	into) say "INSERT INTO seen_discarding SELECT key FROM source_$2" ;;
	distinct)
		say "SELECT count(*) FROM streamfilter_distinct(NULL::source_$2, 'SELECT * FROM source_$2', 'clq(memory=16MB, fpr=0.01)', '{key}')"
		;;
	small_plain) small arrivals "$2" ;;
	small_trigger) small discarding "$2" ;;
	block_plain) block arrivals "$2" ;;
	block) block discarding "$2" ;;
	single_plain) single arrivals "$2" ;;
	single_unlogged) single unlogged "$2" ;;
	single_logged) single discarding "$2" ;;
	select_1) repeated 'SELECT 1' "$2" ;;
	update) say "UPDATE kept_$2 SET payload = repeat('y', 60)" ;;
	delete) say "DELETE FROM kept_$2" ;;
	single_update) repeated "UPDATE kept_$2 SET payload = repeat('y', 60) WHERE key = %d" "$2" ;;
	single_delete) repeated "DELETE FROM kept_$2 WHERE key = %d" "$2" ;;
	ten_*) ten "$(fate_table "$1")" "$(fate_clause "$1")" "$2" ;;
	nothing_new* | upsert*) say "INSERT INTO $(fate_table "$1") SELECT * FROM kept_$2 $(fate_clause "$1")" ;;
	*) say "INSERT INTO $(fate_table "$1") SELECT * FROM source_$2 $(fate_clause "$1")" ;;
	esac
}

fate_table() { # case
	local name
	case $1 in
	*nothing*) name=ignoring ;;
	*upsert*) name=upserted ;;
	refused*) name=refusing ;;
	*later*) name=changed ;;
	*filters) say twice && return ;;
	esac
	case $1 in
	*_plain) say "$name" ;;
	*) say "${name}_seen" ;;
	esac
}

fate_clause() { # case
	case $1 in
	*nothing* | refused*) say "ON CONFLICT DO NOTHING" ;;
	*upsert*) say "ON CONFLICT (key) DO UPDATE SET payload = excluded.payload" ;;
	esac
}

ten() { sed "s/arrivals/$1/; s/\$/ $2/" "$WORK/tmp/lists_10_$3.sql"; } # table clause all|few

repeated() { # format all|few: with numbers from 1 on
	local number count=$SINGLES
	[ "$2" = all ] || count=5
	# shellcheck disable=SC2059 # a format, whose %d may be absent
	for ((number = 1; number <= count; number++)); do printf "$1\n" "$number"; done
}

single() { # table all|few
	local number sign=1 count=$SINGLES
	[ "$2" = all ] || sign=-1 count=5
	for ((number = 1; number <= count; number++)); do
		say "INSERT INTO $1 VALUES ($((sign * number * 1234567891011)), repeat('x', 60))"
	done
}

block() { # table all|few
	say BEGIN
	single "$@"
	say COMMIT
}

small() { # table all|few
	local i rows=$ROWS
	[ "$2" = all ] || rows=10
	for ((i = 0; i < rows; i += 1000)); do
		say "INSERT INTO $1 SELECT hashint8extended(i, $i + $rows), repeat('x', 60) FROM generate_series(1, least($rows, 1000)) i"
	done
}
