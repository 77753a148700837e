# Bulk loads: the same rows, half of them repeats, loaded in different ways. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

PEER_ROWS=1000000 # ways that are slow per row are measured up to this number
LIST_ROWS=1000000 # lists of rows and other keys: up to so many
MOST_ROWS=5000000 # with more rows there are two rounds, and only ways that goals are about

bulk_titles() {
	title bulk scan "scan of the source"
	title bulk plain "INSERT, distinct rows only"
	title bulk all "INSERT, all rows"
	title bulk seen "INSERT WHERE NOT streamfilter_seen"
	title bulk seen_single "WHERE NOT streamfilter_seen, batch_insert off"
	title bulk seen_alone "WHERE NOT streamfilter_seen, batch_scan off, too"
	title bulk seen_unlogged "WHERE NOT streamfilter_seen, filter unlogged"
	title bulk trigger "INSERT, trigger streamfilter_discard"
	title bulk trigger_single "trigger streamfilter_discard, batch_insert off"
	title bulk trigger_unlogged "trigger streamfilter_discard, filter unlogged"
	title bulk seen_two "WHERE NOT streamfilter_seen, clq with two lines"
	title bulk trigger_two "trigger streamfilter_discard, clq with two lines"
	title bulk unique "UNIQUE, ON CONFLICT DO NOTHING"
	title bulk exists "PL/pgSQL trigger, EXISTS"
	title bulk hash "hash index, ON CONFLICT DO NOTHING"
	title bulk staging "staging table, DISTINCT ON, anti-join, one load"
	title bulk staging_loads "the same, 100 loads, index on the target"
	title bulk noop "INSERT, all rows, PL/pgSQL no-op trigger"
	title bulk copy "COPY, all rows"
	title bulk copy_off "COPY, discard trigger switched off"
	title bulk copy_noop "COPY, PL/pgSQL no-op trigger"
	title bulk copy_trigger "COPY, trigger streamfilter_discard"
	title bulk copy_single "COPY, the trigger, batch_insert off"
	title bulk copy_new "COPY, distinct rows only"
	title bulk copy_new_trigger "COPY, distinct rows only, the trigger"
	title bulk values "INSERT of lists of 1000 rows, all rows"
	title bulk values_trigger "lists of 1000 rows, trigger streamfilter_discard"
	title bulk values_single "lists of 1000 rows, the trigger, batch_insert off"
	title bulk into_filter "INSERT INTO filter SELECT, $BIG_MEMORY"
	title bulk into_dynamic "INSERT INTO filter SELECT, $BIG_MEMORY, dynamic memory"
	local key
	for key in text three; do
		title bulk "${key}_scan" "$(key_title $key): scan of the source"
		title bulk "${key}_plain" "$(key_title $key): INSERT, distinct rows only"
		title bulk "${key}_seen" "$(key_title $key): INSERT WHERE NOT streamfilter_seen"
		title bulk "${key}_trigger" "$(key_title $key): INSERT, trigger streamfilter_discard"
	done
}

key_title() { # text|three
	case $1 in text) say "text key" ;; three) say "key of three columns" ;; esac
}

# All rows as a table, as a file for COPY and, if there are not too many, as INSERTs of 1000; the distinct ones as a
# table, in the order they first come, and as a file.
bulk_source() { # rows
	{
		say "DROP TABLE IF EXISTS source, distinct_rows;"
		rows_sql source "$1" ", repeat('x', 60) AS payload"
		distinct_sql source distinct_rows key
		say "COPY source TO '$WORK/tmp/source.copy';"
		say "COPY distinct_rows TO '$WORK/tmp/distinct.copy';"
		[ "$1" -gt "$LIST_ROWS" ] || lists_sql
	} | sql
	[ "$1" -gt "$LIST_ROWS" ] || bulk_other_sources "$1"
}

distinct_sql() { # source target keys
	say "CREATE UNLOGGED TABLE $2 AS SELECT $3, payload FROM (SELECT DISTINCT ON ($3) ctid, $3, payload"
	say "  FROM $1 ORDER BY $3, ctid) AS first ORDER BY ctid;"
	say "VACUUM (FREEZE, ANALYZE) $2;"
}

lists_sql() {
	say "COPY (SELECT 'INSERT INTO arrivals VALUES ' || string_agg(format('(%s, %L)', key, payload), ', ') || ';'"
	say "  FROM (SELECT *, (row_number() OVER () - 1) / 1000 AS list FROM source) AS numbered GROUP BY list)"
	say "  TO '$WORK/tmp/lists.sql';"
}

# The same keys as a text of 32 characters, and as three columns.
bulk_other_sources() {
	{
		say "DROP TABLE IF EXISTS text_source, text_distinct, three_source, three_distinct;"
		say "CREATE UNLOGGED TABLE text_source AS SELECT md5(key::text) AS key, payload FROM source;"
		say "CREATE UNLOGGED TABLE three_source AS SELECT key, (key % 1000)::int AS shop, left(md5(key::text), 12) AS page, payload"
		say "  FROM source;"
		say "VACUUM (FREEZE, ANALYZE) text_source, three_source;"
		distinct_sql text_source text_distinct key
		distinct_sql three_source three_distinct "key, shop, page"
	} | sql
}

bulk_table() { # way
	case $1 in
	text_*) say "key text" ;;
	three_*) say "key bigint, shop int, page text" ;;
	*) say "key bigint" ;;
	esac
}

bulk_prepare() { # way
	local keys
	keys=$(bulk_table "$1")
	say "DROP TABLE IF EXISTS arrivals;"
	[[ $1 == *scan ]] || say "CREATE TABLE arrivals ($keys, payload text);"
	case $1 in
	text_seen | text_trigger) keyed_filter_sql "$keys" "''::text" ;;&
	three_seen | three_trigger) keyed_filter_sql "$keys" "0::bigint, 0, ''::text" ;;&
	text_trigger | three_trigger) discard_sql arrivals seen ;;
	seen | seen_single | seen_alone) filter_sql seen "$MEMORY" ;;
	seen_unlogged) filter_sql seen "$MEMORY" "persistence 'unlogged'" ;;
	seen_two) filter_sql seen "$MEMORY" "lines '2'" ;;
	trigger_two) filter_sql seen "$MEMORY" "lines '2'" && discard_sql arrivals seen ;;
	*trigger | *trigger_single | copy_off | copy_single | values_single) filter_sql seen "$MEMORY" && discard_sql arrivals seen ;;
	*trigger_unlogged) filter_sql seen "$MEMORY" "persistence 'unlogged'" && discard_sql arrivals seen ;;
	unique) say "CREATE UNIQUE INDEX ON arrivals (key);" ;;
	hash) say "ALTER TABLE arrivals ADD EXCLUDE USING hash (key WITH =);" ;;
	staging_loads) say "CREATE INDEX ON arrivals (key);" ;;
	exists) exists_sql ;;
	*noop) noop_sql ;;
	into_filter) say "TRUNCATE big;" ;;
	into_dynamic) say "TRUNCATE dynamic;" ;;
	esac
	[ "$1" != copy_off ] || say "SET streamfilter.enabled = off;"
	[[ $1 != *_single ]] || say "SET streamfilter.batch_insert = off;"
	[ "$1" != seen_alone ] || say "SET streamfilter.batch_insert = off; SET streamfilter.batch_scan = off;"
	say "CHECKPOINT;"
}

keyed_filter_sql() { # columns key
	say "DROP FOREIGN TABLE IF EXISTS seen CASCADE;"
	say "CREATE FOREIGN TABLE seen ($1) SERVER streamfilter OPTIONS ($(joined "$FILTER" "memory '$MEMORY'"));"
	say "SELECT FROM streamfilter_test('seen', $2);"
}

noop_sql() {
	say "CREATE OR REPLACE FUNCTION noop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
	say "CREATE TRIGGER noop BEFORE INSERT ON arrivals FOR EACH ROW EXECUTE FUNCTION noop();"
}

# Planned while the table is empty, it would read the whole table for every row.
exists_sql() {
	say "SET enable_seqscan = off;"
	say "CREATE INDEX ON arrivals (key);"
	say "CREATE OR REPLACE FUNCTION check_exists() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN"
	say "  IF EXISTS (SELECT FROM arrivals WHERE key = NEW.key) THEN RETURN NULL; END IF; RETURN NEW; END';"
	say "CREATE TRIGGER check_exists BEFORE INSERT ON arrivals FOR EACH ROW EXECUTE FUNCTION check_exists();"
}

staging_sql() { # source [condition]
	say "CREATE TEMPORARY TABLE staging AS SELECT * FROM $1 ${2:-};"
	say "INSERT INTO arrivals SELECT DISTINCT ON (key) * FROM staging AS s"
	say "  WHERE NOT EXISTS (SELECT FROM arrivals AS a WHERE a.key = s.key) ORDER BY key;"
	say "DROP TABLE staging;"
}

# Each load takes the next hundredth of the pages, and leaves what a daily job would: statistics of the target.
staging_loads_sql() {
	local load
	say "SELECT relpages / 100 + 1 AS pages FROM pg_class WHERE oid = 'source'::regclass \\gset"
	for ((load = 0; load < 100; load++)); do
		say "SELECT format('(%s,0)', $load * :pages) AS low, format('(%s,0)', ($load + 1) * :pages) AS high \\gset"
		staging_sql source "WHERE ctid >= :'low' AND ctid < :'high'"
		[ $((load % 10)) -ne 0 ] || say "ANALYZE arrivals;"
	done
}

bulk_statement() { # way
	local prefix='' distinct=distinct_rows keys=key
	case $1 in
	text_*) prefix=text_ distinct=text_distinct ;;
	three_*) prefix=three_ distinct=three_distinct keys="key, shop, page" ;;
	esac
	case ${1#"$prefix"} in
	scan) say "SELECT count(*) FROM ${prefix}source;" ;;
	plain) say "INSERT INTO arrivals SELECT * FROM $distinct;" ;;
	seen*) say "INSERT INTO arrivals SELECT * FROM ${prefix}source WHERE NOT streamfilter_seen('seen', $keys);" ;;
	unique | hash) say "INSERT INTO arrivals SELECT * FROM source ON CONFLICT DO NOTHING;" ;;
	copy_new*) say "COPY arrivals FROM '$WORK/tmp/distinct.copy';" ;;
	copy*) say "COPY arrivals FROM '$WORK/tmp/source.copy';" ;;
	values*) say "\\i $WORK/tmp/lists.sql" ;;
	staging) staging_sql source ;;
	staging_loads) staging_loads_sql ;;
	into_filter) say "INSERT INTO big SELECT key FROM source;" ;;
	into_dynamic) say "INSERT INTO dynamic SELECT key FROM source;" ;;
	*) say "INSERT INTO arrivals SELECT * FROM ${prefix}source;" ;;
	esac
}

bulk_way() { # way
	if [[ $1 == values* || $1 == staging* ]]; then
		timed_all "bulk_prepare $1" "say '\timing on'" "bulk_statement $1"
	else
		timed "bulk_prepare $1" "say '\timing on'" "bulk_statement $1"
	fi
	case $1 in
	*scan | into_*) ;;
	*) sql -c "SELECT 'note kept ' || count(*) FROM arrivals" ;;
	esac
}

bulk_rounds() { # rows
	local rows=$1 rounds=$ROUNDS round way ways
	ways=(scan plain all seen seen_two seen_single trigger trigger_two trigger_single unique copy copy_trigger copy_single copy_new copy_new_trigger
		into_filter into_dynamic)
	[ "$rows" -gt "$MOST_ROWS" ] || ways+=(seen_alone seen_unlogged trigger_unlogged noop copy_off copy_noop)
	[ "$rows" -gt "$PEER_ROWS" ] || ways+=(exists hash staging staging_loads)
	[ "$rows" -gt "$LIST_ROWS" ] || ways+=(values values_trigger values_single {text,three}_{scan,plain,seen,trigger})
	[ "$rows" -le "$MOST_ROWS" ] || rounds=2
	for ((round = 1; round <= rounds; round++)); do
		for way in "${ways[@]}"; do measure bulk "$way" "$rows" "$round" bulk_way "$way"; done
	done
}

# bulk_goal TEXT CASES CASES most|least LIMIT ROWS: the ratio of two ways.
bulk_goal() {
	goal 20 "$1 at $(commas "$6") rows" "$(per_round ratio bulk "$6" "$2" "$3")" "$4" "$5" x
}

bulk_goals() { # rows
	local n=$1 base=scan+plain at key
	at="at $(commas "$1") rows"
	bulk_goal "WHERE NOT streamfilter_seen: x (scan + INSERT of the distinct rows)" seen $base most 1.1 "$n"
	bulk_goal "trigger: x (scan + INSERT of the distinct rows)" trigger $base most 1.1 "$n"
	bulk_goal "WHERE NOT streamfilter_seen: x INSERT of all rows" seen all most 0.65 "$n"
	bulk_goal "trigger: x INSERT of all rows" trigger all most 0.65 "$n"
	bulk_goal "COPY with trigger: x COPY of all rows without" copy_trigger copy most 1.1 "$n"
	bulk_goal "COPY of distinct rows with trigger: x without" copy_new_trigger copy_new most 1.25 "$n"
	bulk_goal "lists of 1000 rows with trigger: x without" values_trigger values most 1.15 "$n"
	bulk_goal "UNIQUE, ON CONFLICT: x trigger" unique trigger least 10 "$n"
	for key in text three; do
		bulk_goal "$(key_title $key), WHERE NOT streamfilter_seen: x (scan + INSERT of the distinct rows)" "${key}_seen" \
			"${key}_scan+${key}_plain" most 1.1 "$n"
		bulk_goal "$(key_title $key), trigger: x (scan + INSERT of the distinct rows)" "${key}_trigger" \
			"${key}_scan+${key}_plain" most 1.1 "$n"
	done
	bulk_goal "two lines, WHERE NOT streamfilter_seen: x one line" seen_two seen most 1.05 "$n"
	bulk_goal "two lines, trigger: x one line" trigger_two trigger most 1.05 "$n"
	goal 5.1 "both without batches: x (scan + INSERT of the distinct rows) $at" \
		"$(per_round ratio bulk "$n" seen_alone $base)" most 1.6 x
	goal 5.2 "trigger, batch_insert off: x (scan + INSERT of the distinct rows) $at" \
		"$(per_round ratio bulk "$n" trigger_single $base)" most 1.8 x
	goal 5.3 "INSERT INTO filter SELECT, $BIG_MEMORY: ns per key over the scan $at" \
		"$(per_round difference bulk "$n" into_filter scan "1e9 / $n")" most 120 ns
	goal 22 "INSERT INTO filter SELECT, dynamic memory: x shared memory $at" \
		"$(per_round ratio bulk "$n" into_dynamic into_filter)" most 1.5 x
	goal 7 "WHERE NOT streamfilter_seen, filter logged: x unlogged $at" \
		"$(per_round ratio bulk "$n" seen seen_unlogged)" most 1.15 x
	goal 7 "trigger, filter logged: x unlogged $at" "$(per_round ratio bulk "$n" trigger trigger_unlogged)" most 1.15 x
}

section_bulk() {
	local rows
	bulk_titles
	filter_sql big "$BIG_MEMORY" | sql
	filter_sql dynamic "$BIG_MEMORY" | sql # SHARED_MEMORY has no room for both
	[ "$(sql -c "SELECT filter FROM streamfilter_stats WHERE dynamic_memory > 0")" = dynamic ] ||
		die "filter \"dynamic\" is not in dynamic memory" "Make SHARED_MEMORY smaller than twice BIG_MEMORY."
	for rows in "${ROWS[@]}"; do
		stage "  $(commas "$rows") rows" bulk_source "$rows"
		note bulk scan "$rows" distinct "$(sql -c 'SELECT count(*) FROM distinct_rows')"
		bulk_rounds "$rows"
		bulk_goals "$rows"
	done
	sql -c "DROP TABLE source, distinct_rows, arrivals" -c "DROP FOREIGN TABLE big, dynamic, seen" \
		-c "DROP TABLE IF EXISTS text_source, text_distinct, three_source, three_distinct"
	rm -f "$WORK"/tmp/{source.copy,distinct.copy,lists.sql}
}
