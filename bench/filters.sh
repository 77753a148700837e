#!/usr/bin/env bash
# What many filters cost: for each count a server of its own, in which every filter is made, gets 100 keys singly, and is used
# again after a crash. Prints a table in Markdown: for each filter the time of CREATE, the time of a first use and the pages of the
# log that the second one reads, and the memory of a session that uses all; the time of streamfilter_stats; the pages of the log.
#
#   bench/filters.sh [COUNT...]     1 100 1000; 10000 take half an hour more
#
# The extension must be installed for PG_CONFIG.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=lib/own_server.sh
source "$ROOT/bench/lib/own_server.sh"

COUNTS=(1 100 1000)
[ $# -eq 0 ] || COUNTS=("$@")

milliseconds() { # statement
	{ say '\timing on' && say "$1"; } | sql | awk '/^Time: / { sum += $2 } END { print sum }'
}

# Runs a statement for each filter, in one transaction.
for_each() { # count statement, where %1$s is the number
	say "DO \$do\$ BEGIN FOR i IN 1 .. $1 LOOP EXECUTE format(\$x\$$2\$x\$, i); END LOOP; END \$do\$;"
}

fill() { # count: a hundred keys of every filter, a thousand filters in a transaction
	local i
	for ((i = 1; i <= 100; i++)); do
		say "DO \$do\$ BEGIN FOR i IN 1 .. $1 LOOP"
		say "  EXECUTE format('INSERT INTO f_%s VALUES ($i)', i); IF i % 1000 = 0 THEN COMMIT; END IF; END LOOP; END \$do\$;"
	done | sql
}

pages_read() { # of the log, by now, once this filter is used
	local fetched="SELECT pg_stat_get_blocks_fetched('_streamfilter.streamfilter_log'::regclass)"
	local flush='SELECT FROM pg_stat_force_next_flush()'
	sql -c "SELECT FROM streamfilter_test('f_$1', 1)" -c "$flush" -c "$fetched" | tail -n 1
}

row() { # count
	local count=$1 create use first second stats memory log
	create=$(milliseconds "$(for_each "$count" "CREATE FOREIGN TABLE f_%1\$s (id int) SERVER streamfilter OPTIONS (kind 'clq', fpr '0.01', memory '8kB')")")
	quietly fill "$count"
	log=$(sql -c "SELECT pg_relation_size('_streamfilter.streamfilter_log') / 8192")
	quietly as_server "$(pg_bin)/pg_ctl" -D "$WORK/data" -w -m immediate stop
	quietly start_server
	first=$(pages_read 1)
	second=$(pages_read "$count")
	use=$(milliseconds "$(for_each "$count" "SELECT streamfilter_test('f_%1\$s', 1)")")
	stats=$(milliseconds "SELECT count(*) FROM streamfilter_stats;")
	memory=$({
		for_each "$count" "SELECT streamfilter_test('f_%1\$s', 1)"
		say "SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name LIKE 'streamfilter%';"
	} | sql)
	awk -v n="$count" -v create="$create" -v use="$use" -v pages="$((second - first))" -v stats="$stats" -v memory="$memory" -v log_pages="$log" 'BEGIN {
		printf "| %d | %.2f ms | %.2f ms | %d | %.1f kB | %.0f ms | %d |\n", n, create / n, use / n, pages, memory / n / 1024, stats, log_pages }'
}

main() {
	local count
	case ${1:-} in -*) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 0 ;; esac
	printf '| filters | CREATE | first use | its pages | session | stats | log, pages |\n|---|---|---|---|---|---|---|\n'
	for count in "${COUNTS[@]}"; do
		own_server "streamfilter.max_filters = $((count + 10))" "streamfilter.shared_memory = '$((count / 50 + 32))MB'" \
			"max_locks_per_transaction = $((count / 50 + 64))" "autovacuum = off" "streamfilter.restore_workers = 0"
		row "$count"
		remove_work
	done
}

main "$@"
