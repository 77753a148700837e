#!/usr/bin/env bash
# What transactions without a filter pay for the library: their rate with it, as a share of the rate without it. Pairs
# of servers alternate; the share is the median of the rounds. Prints a table in Markdown.
#
#   bench/toll.sh [SECONDS [ROUNDS]]     1 second for each of 8 cases, 5 rounds: 3 minutes
#
# The extension must be installed for PG_CONFIG. Leave two cores idle.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=lib/own_server.sh
source "$ROOT/bench/lib/own_server.sh"

SECONDS_EACH=${1:-1} ROUNDS=${2:-5}
CASES=("SELECT 1" "INSERT of a row" "a connection" "savepoints" "a temporary table" "DDL" "COPY of 100 rows" "partitions")
SERVERS=(without 128 8192)

statements() { # case
	case $1 in
	"SELECT 1" | "a connection") say 'SELECT 1;' ;;
	"INSERT of a row") say 'INSERT INTO plain VALUES (1);' ;;
	savepoints)
		say 'BEGIN;'
		say 'SAVEPOINT a; SELECT 1; RELEASE a; SAVEPOINT b; SELECT 1; ROLLBACK TO b;'
		say 'COMMIT;'
		;;
	"a temporary table") say 'BEGIN; CREATE TEMPORARY TABLE t (a int) ON COMMIT DROP; INSERT INTO t VALUES (1); COMMIT;' ;;
	DDL) say 'BEGIN; CREATE TABLE d (a int); ALTER TABLE d ADD b int; ROLLBACK;' ;;
	"COPY of 100 rows") say "COPY plain FROM '$WORK/tmp/rows';" ;;
	partitions) say 'INSERT INTO parted SELECT i FROM generate_series(1, 100) i;' ;;
	esac
}

create_objects() {
	seq 100 >"$WORK/tmp/rows"
	chmod a+r "$WORK/tmp/rows"
	sql <<-END
		CREATE UNLOGGED TABLE plain (key bigint);
		CREATE TABLE parted (key bigint) PARTITION BY HASH (key);
		SELECT format('CREATE UNLOGGED TABLE part_%s PARTITION OF parted FOR VALUES WITH (MODULUS 8, REMAINDER %s)', i, i)
		FROM generate_series(0, 7) i \gexec
		SELECT format('CREATE FOREIGN TABLE elsewhere_%s (key bigint) SERVER streamfilter OPTIONS (kind ''clq'', memory ''64kB'')', i)
		FROM generate_series(1, 100) i \gexec
	END
}

use_filters() { # the hundred filters that another session uses
	sql -c "SELECT streamfilter_test(format('elsewhere_%s', i)::regclass, 1::bigint) FROM generate_series(1, 100) i" >/dev/null
}

switch_to() { # server
	if [ "$1" = without ]; then
		restart_with "shared_preload_libraries = ''"
	else
		restart_with "shared_preload_libraries = 'streamfilter'" "streamfilter.max_filters = $1"
		use_filters
	fi
}

measure_server() { # server round
	local name script=$WORK/tmp/script more
	for name in "${CASES[@]}"; do
		statements "$name" >"$script"
		more=()
		[ "$name" != "a connection" ] || more=(--connect)
		sql -c 'TRUNCATE plain, parted'
		printf '%s\t%s\t%s\t%s\n' "$name" "$1" "$2" "$(rate "$script" 8 "$SECONDS_EACH" ${more[@]+"${more[@]}"})" >>"$WORK/tmp/rates"
	done
}

share() { # case server
	awk -F '\t' -v name="$1" -v server="$2" '$1 == name { rate[$2, $3] = $4; rounds[$3] }
		END { for (r in rounds) print rate[server, r] / rate["without", r] }' "$WORK/tmp/rates" | median
}

main() {
	local round server name
	case ${1:-} in -*) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 0 ;; esac
	own_server "streamfilter.shared_memory = '64MB'"
	quietly create_objects
	for ((round = 1; round <= ROUNDS; round++)); do
		for server in "${SERVERS[@]}"; do
			switch_to "$server"
			measure_server "$server" "$round"
		done
		SERVERS=("${SERVERS[2]}" "${SERVERS[0]}" "${SERVERS[1]}")
	done
	printf '| rate, of that without the library | max_filters 128 | 8192 |\n|---|---|---|\n'
	for name in "${CASES[@]}"; do printf '| %s | %.2f | %.2f |\n' "$name" "$(share "$name" 128)" "$(share "$name" 8192)"; done
}

main "$@"
