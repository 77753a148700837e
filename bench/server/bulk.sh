# Bulk loads: the same rows, of which half are repeats, loaded in different ways. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

PEER_ROWS=1000000 # what is slow per row is shown up to so many rows
MOST_ROWS=5000000 # of more rows there are two rounds, and only what goals are about

bulk_titles() {
	title bulk scan "scan of the source"
	title bulk plain "INSERT, distinct rows only"
	title bulk all "INSERT, all rows"
	title bulk seen "INSERT WHERE NOT streamfilter_seen"
	title bulk seen_unlogged "WHERE NOT streamfilter_seen, filter unlogged"
	title bulk seen_alone "WHERE NOT streamfilter_seen, batch_scan off"
	title bulk trigger "INSERT, trigger streamfilter_discard"
	title bulk trigger_unlogged "trigger streamfilter_discard, filter unlogged"
	title bulk unique "UNIQUE, ON CONFLICT DO NOTHING"
	title bulk exists "PL/pgSQL trigger, EXISTS"
	title bulk hash "hash index, ON CONFLICT DO NOTHING"
	title bulk noop "INSERT, all rows, PL/pgSQL no-op trigger"
	title bulk copy "COPY"
	title bulk copy_off "COPY, discard trigger switched off"
	title bulk copy_noop "COPY, PL/pgSQL no-op trigger"
	title bulk copy_trigger "COPY, trigger streamfilter_discard"
	title bulk into_filter "INSERT INTO filter SELECT, $BIG_MEMORY"
}

# All rows come as a table and as a file; the distinct ones as a table, in the order of their first occurrence.
bulk_source() {
	{
		say "DROP TABLE IF EXISTS source, distinct_rows;"
		rows_sql source "$1" ", repeat('x', 60) AS payload"
		say "CREATE UNLOGGED TABLE distinct_rows AS SELECT key, payload FROM (SELECT DISTINCT ON (key) ctid, key, payload"
		say "  FROM source ORDER BY key, ctid) AS first ORDER BY ctid;"
		say "VACUUM (FREEZE, ANALYZE) distinct_rows;"
		say "COPY source TO '$WORK/tmp/source.copy';"
	} | sql
}

bulk_prepare() { # way
	say "DROP TABLE IF EXISTS arrivals;"
	[ "$1" = scan ] || say "CREATE TABLE arrivals (key bigint, payload text);"
	case $1 in
	seen | seen_alone) filter_sql seen "$MEMORY" ;;
	seen_unlogged) filter_sql seen "$MEMORY" "persistence 'unlogged'" ;;
	*trigger | copy_off) filter_sql seen "$MEMORY" && discard_sql arrivals seen ;;
	*trigger_unlogged) filter_sql seen "$MEMORY" "persistence 'unlogged'" && discard_sql arrivals seen ;;
	unique) say "CREATE UNIQUE INDEX ON arrivals (key);" ;;
	hash) say "ALTER TABLE arrivals ADD EXCLUDE USING hash (key WITH =);" ;;
	exists) exists_sql ;;
	*noop) noop_sql ;;
	into_filter) say "TRUNCATE big;" ;;
	esac
	[ "$1" != copy_off ] || say "SET streamfilter.enabled = off;"
	[ "$1" != seen_alone ] || say "SET streamfilter.batch_scan = off;"
	say "CHECKPOINT;"
}

noop_sql() {
	say "CREATE OR REPLACE FUNCTION noop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
	say "CREATE TRIGGER noop BEFORE INSERT ON arrivals FOR EACH ROW EXECUTE FUNCTION noop();"
}

# Its plan is made when the table is still empty, and would then read the whole table for every row.
exists_sql() {
	say "SET enable_seqscan = off;"
	say "CREATE INDEX ON arrivals (key);"
	say "CREATE OR REPLACE FUNCTION check_exists() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN"
	say "  IF EXISTS (SELECT FROM arrivals WHERE key = NEW.key) THEN RETURN NULL; END IF; RETURN NEW; END';"
	say "CREATE TRIGGER check_exists BEFORE INSERT ON arrivals FOR EACH ROW EXECUTE FUNCTION check_exists();"
}

bulk_statement() { # way
	case $1 in
	scan) say "SELECT count(*) FROM source;" ;;
	plain) say "INSERT INTO arrivals SELECT * FROM distinct_rows;" ;;
	seen*) say "INSERT INTO arrivals SELECT * FROM source WHERE NOT streamfilter_seen('seen', key);" ;;
	unique | hash) say "INSERT INTO arrivals SELECT * FROM source ON CONFLICT DO NOTHING;" ;;
	copy*) say "COPY arrivals FROM '$WORK/tmp/source.copy';" ;;
	into_filter) say "INSERT INTO big SELECT key FROM source;" ;;
	*) say "INSERT INTO arrivals SELECT * FROM source;" ;;
	esac
}

bulk_way() { # way
	timed "bulk_prepare $1" "say '\\timing on'" "bulk_statement $1"
	case $1 in
	scan | into_filter) ;;
	*) sql -c "SELECT 'note kept ' || count(*) FROM arrivals" ;;
	esac
}

bulk_rounds() { # rows
	local rows=$1 rounds=$ROUNDS round way ways
	ways=(scan plain seen seen_alone trigger unique copy_off copy_trigger into_filter)
	[ "$rows" -gt "$MOST_ROWS" ] || ways+=(all seen_unlogged trigger_unlogged noop copy copy_noop)
	[ "$rows" -gt "$PEER_ROWS" ] || ways+=(exists hash)
	[ "$rows" -le "$MOST_ROWS" ] || rounds=2
	for ((round = 1; round <= rounds; round++)); do
		for way in "${ways[@]}"; do measure bulk "$way" "$rows" "$round" bulk_way "$way"; done
	done
}

bulk_goals() { # rows
	local n=$1 base=scan+plain at
	at="at $(commas "$1") rows"
	goal 5.1 "WHERE NOT streamfilter_seen: x (scan + INSERT of the distinct rows) $at" \
		"$(per_round ratio bulk "$n" seen $base)" most 1.25 x
	goal 5.1 "the same, batch_scan off $at" "$(per_round ratio bulk "$n" seen_alone $base)" most 1.6 x
	goal 5.1 "ON CONFLICT: x WHERE NOT streamfilter_seen $at" "$(per_round ratio bulk "$n" unique seen)" least 5 x
	goal 5.2 "trigger: x (scan + INSERT of the distinct rows) $at" \
		"$(per_round ratio bulk "$n" trigger $base)" most 1.8 x
	goal 5.2 "ON CONFLICT: x trigger $at" "$(per_round ratio bulk "$n" unique trigger)" least 3.5 x
	goal 5.2 "COPY with trigger: x COPY with the same trigger switched off $at" \
		"$(per_round ratio bulk "$n" copy_trigger copy_off)" most 1.3 x
	goal 5.3 "INSERT INTO filter SELECT, $BIG_MEMORY: ns per key over the scan $at" \
		"$(per_round difference bulk "$n" into_filter scan "1e9 / $n")" most 120 ns
	goal 7 "WHERE NOT streamfilter_seen, filter logged: x unlogged $at" \
		"$(per_round ratio bulk "$n" seen seen_unlogged)" most 1.15 x
	goal 7 "trigger, filter logged: x unlogged $at" "$(per_round ratio bulk "$n" trigger trigger_unlogged)" most 1.15 x
}

section_bulk() {
	local rows
	bulk_titles
	filter_sql big "$BIG_MEMORY" | sql
	for rows in "${ROWS[@]}"; do
		stage "  $(commas "$rows") rows" bulk_source "$rows"
		note bulk scan "$rows" distinct "$(sql -c 'SELECT count(*) FROM distinct_rows')"
		bulk_rounds "$rows"
		bulk_goals "$rows"
	done
	sql -c "DROP TABLE source, distinct_rows, arrivals" -c "DROP FOREIGN TABLE big, seen"
	rm -f "$WORK/tmp/source.copy"
}
