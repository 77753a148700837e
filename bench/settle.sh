#!/usr/bin/env bash
# No row lost, none twice: a unique index, a filter in front of one, and a filter alone that is settled at the end.
# See --help.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"

BUFFERS=32MB THERE=6000000 ROWS=1000000 BATCH=10000 RECENT=100000 INSTALLED=''
FILTER="kind 'clq', memory '64MB'"
MOST_LOST=5        # of 500,000 new rows at fpr 1e-6: more are lost once in 70,000 runs
declare -A TOOK=() # milliseconds, by stream and way

usage() {
	cat <<-'END'
		Usage: bench/settle.sh [OPTION...]

		Loads rows, in transactions of 10,000, into a table whose unique index has four times the size of shared_buffers, in
		three ways: INSERT … ON CONFLICT DO NOTHING; the same with streamfilter_discard in front of the index; without an
		index, with streamfilter_divert, and streamfilter_settle() at the end. Half of the rows are repeats, or 95 %; of any
		row that was there (uniform), or of those that came last (recent). The settled table must equal that of the unique
		index; the one in between may lack the few rows that its filter takes wrongly. The filter in front is a clq; the one
		that is settled is a Bloom filter, which misses no repeat. Prints a table in Markdown: seconds and ratios. Builds streamfilter, and uses a copy of the PostgreSQL server below /tmp,
		which is gone afterwards.

		  --quick        a tenth of the rows: shows that everything runs
		  --rows N       that come, default: 1000000
		  --filter LIST  options of the filter in front, default: kind 'clq', memory '64MB'
		  --installed    streamfilter is a package that is installed: nothing is built
	END
}

parse_arguments() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) usage && exit 0 ;;
		--quick) BUFFERS=4MB THERE=600000 ROWS=100000 RECENT=10000 FILTER="kind 'clq', memory '8MB'" ;;
		--installed) INSTALLED=yes ;;
		--rows | --filter)
			[ -n "${2:-}" ] || die "$1 needs a value" "See --help."
			if [ "$1" = --rows ]; then ROWS=$2; else FILTER=$2; fi
			shift
			;;
		*) die "unknown option: $1" "See --help." ;;
		esac
		shift
	done
}

start_small_server() {
	as_server "$(pg_bin)/initdb" -D "$WORK/data" -U postgres -A trust -E UTF8 --locale=C -N
	configure_server
	say "shared_buffers = '$BUFFERS'" >>"$WORK/data/postgresql.conf"
	start_server
	sql -c 'CREATE EXTENSION streamfilter'
}

# Rows of the same key differ in their number only, which shows which of them came into the table.
make_sources() {
	sql <<-SQL
		CREATE UNLOGGED TABLE there AS SELECT 0 AS n, hashint8extended(i, 0) AS key, repeat('x', 40) AS payload
		  FROM generate_series(1, $THERE) i;
		CREATE PROCEDURE make_stream(new float8, recent bool) LANGUAGE plpgsql AS \$\$
		BEGIN
		  DROP TABLE IF EXISTS stream;
		  PERFORM setseed(.5);
		  -- A row that is new takes the next number; a repeat, one that is there, or one of the last that were taken.
		  CREATE UNLOGGED TABLE stream AS
		    SELECT n, hashint8extended(CASE WHEN is_new THEN taken WHEN recent THEN taken - (random() * $RECENT)::bigint
		      ELSE 1 + (random() * ($THERE - 1))::bigint END, 0) AS key, repeat('x', 40) AS payload
		    FROM (SELECT n, is_new, $THERE + count(*) FILTER (WHERE is_new) OVER (ORDER BY n) AS taken
		      FROM (SELECT n, random() < new AS is_new FROM generate_series(1, $ROWS) n) AS drawn) AS numbered;
		  CREATE INDEX ON stream (n);
		END\$\$;
		CREATE PROCEDURE load(rest text) LANGUAGE plpgsql AS \$\$
		BEGIN
		  FOR start IN 1..$ROWS BY $BATCH LOOP
		    EXECUTE 'INSERT INTO arrivals SELECT * FROM stream WHERE n >= \$1 AND n < \$1 + $BATCH ORDER BY n ' || rest USING start;
		    COMMIT;
		  END LOOP;
		END\$\$;
	SQL
}

make_filter() { # options
	say "CREATE FOREIGN TABLE seen (key bigint) SERVER streamfilter OPTIONS ($1);"
	say "INSERT INTO seen SELECT key FROM there;"
}

prepare_way() { # way
	{
		say "SET client_min_messages = error; SET maintenance_work_mem = '512MB';"
		say "DROP TABLE IF EXISTS arrivals, repeats; DROP FOREIGN TABLE IF EXISTS seen;"
		say "CREATE TABLE arrivals (n int, key bigint, payload text);"
		say "INSERT INTO arrivals SELECT * FROM there;"
		[ "$1" = alone ] || say "ALTER TABLE arrivals ADD UNIQUE (key);"
		case $1 in
		front) make_filter "$FILTER" && say "CREATE TRIGGER zz BEFORE INSERT ON arrivals FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');" ;;
		alone)
			make_filter "kind 'bloom', keys '$((THERE + ROWS))'"
			say "CREATE TABLE repeats (LIKE arrivals, diverted_at timestamptz);"
			say "CREATE TRIGGER zz BEFORE INSERT ON arrivals FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');"
			;;
		esac
		say "VACUUM (ANALYZE) arrivals;"
		say "CHECKPOINT;"
	} | sql
}

milliseconds() { awk '/^Time:/ { ms += $2 } END { printf "%.0f\n", ms }' "$WORK/job.log"; }

load_way() { # way
	local rest=''
	[ "$1" = alone ] || rest='ON CONFLICT DO NOTHING'
	sql -c '\timing on' -c "CALL load('$rest')"
}

settle_way() { sql -c '\timing on' -c "SELECT restored, confirmed, waiting FROM streamfilter_settle('repeats', 'arrivals')"; }

# The rows that have come into the table, without those there before, and their number.
keep_or_compare() { # way
	local came='SELECT * FROM arrivals WHERE n > 0' lost most=0
	if [ "$1" = plain ]; then
		sql -c "DROP TABLE IF EXISTS truth" -c "CREATE UNLOGGED TABLE truth AS $came"
		return
	fi
	lost=$(sql -c "SELECT count(*) FROM (TABLE truth EXCEPT ALL $came) AS lost")
	say "rows lost: $lost"
	[ "$1" = alone ] || most=$MOST_LOST
	[ "$lost" -le "$most" ] &&
		[ "$(sql -c "SELECT count(*) FROM ($came EXCEPT ALL TABLE truth) AS twice")" = 0 ] &&
		[ "$(sql -c "SELECT count(*) FROM arrivals WHERE n = 0")" = "$THERE" ]
}

measure_way() { # stream way
	stage "  $2: its table" prepare_way "$2"
	stage "  $2: rows" load_way "$2"
	TOOK[$1 $2]=$(milliseconds)
	if [ "$2" = alone ]; then
		stage "  alone: settle" settle_way
		TOOK[$1 settle]=$(milliseconds)
		say "    restored|confirmed|waiting: $(grep '|' "$WORK/job.log")"
	fi
	stage "  $2: compared" keep_or_compare "$2"
	[ "$2" = plain ] || say "    $(grep 'rows lost' "$WORK/job.log")"
}

STREAMS=("50 uniform" "50 recent" "95 uniform" "95 recent")

table() {
	local stream
	say ""
	say "| repeats | ON CONFLICT | filter in front | ratio | filter alone | settle | ratio |"
	say "|---|---|---|---|---|---|---|"
	for stream in "${STREAMS[@]}"; do
		awk -v stream="${stream/ / %, }" -v plain="${TOOK[$stream plain]}" -v front="${TOOK[$stream front]}" \
			-v alone="${TOOK[$stream alone]}" -v settle="${TOOK[$stream settle]}" 'BEGIN {
			printf "| %s | %.2f s | %.2f s | %.2f | %.2f s | %.2f s | %.2f |\n", stream, plain / 1000, front / 1000,
				plain / front, alone / 1000, settle / 1000, plain / (alone + settle) }'
	done
}

main() {
	local stream way recent
	parse_arguments "$@"
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	PRIVATE=yes
	[ -z "$INSTALLED" ] || find_installed
	# shellcheck disable=SC2119
	prepare
	[ -n "$INSTALLED" ] || build_and_copy
	stage "starting a server" start_small_server
	stage "rows" make_sources
	for stream in "${STREAMS[@]}"; do
		if [[ $stream = *recent ]]; then recent=true; else recent=false; fi
		stage "$stream" sql -c "CALL make_stream(1 - ${stream% *} / 100.0, $recent)"
		for way in plain front alone; do measure_way "$stream" "$way"; done
	done
	table
}

main "$@"
