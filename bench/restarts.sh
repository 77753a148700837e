#!/usr/bin/env bash
# What a filter costs by its size, in WAL and at a restart: its image, the bytes that a first use reads after a crash,
# and its keys, singly and in bulk. Prints a table in Markdown.
#
#   bench/restarts.sh [MB...]       64 256 1024 4096; 4096 takes 5 GB of memory and 30 GB of disk
#
# The extension must be installed for PG_CONFIG.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=lib/own_server.sh
source "$ROOT/bench/lib/own_server.sh"

SIZES=(64 256 1024 4096)
[ $# -eq 0 ] || SIZES=("$@")
SINGLE=2000 BULK=100000

wal_of() { # statement: bytes
	{
		say "SELECT pg_current_wal_insert_lsn() AS before \\gset"
		say "$1;"
		say "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), :'before');"
	} | sql | tail -n 1
}

insert_singly() { # filter
	say "DO \$\$ BEGIN FOR i IN 1 .. $SINGLE LOOP INSERT INTO $1 VALUES (-i); COMMIT; END LOOP; END \$\$"
}

# Half of the keys that fill it come first: they touch all of its pages.
prepare_filters() { # MB
	sql -c "CREATE FOREIGN TABLE filled (id bigint) SERVER streamfilter OPTIONS (kind 'clq', fpr '0.01', memory '$1MB')" \
		-c "CREATE FOREIGN TABLE unlogged (id bigint) SERVER streamfilter OPTIONS (kind 'clq', fpr '0.01', memory '1MB', persistence 'unlogged')" \
		-c "INSERT INTO filled SELECT generate_series(1, $(($1 * 1024 * 1024 / 4)))" \
		-c "CHECKPOINT"
}

pages_read() {
	sql -c "EXPLAIN (ANALYZE, BUFFERS, TIMING off, COSTS off) SELECT streamfilter_test('filled', 1)" |
		grep -oE '(hit|read)=[0-9]+' | awk -F= '{ sum += $2 } END { print sum }'
}

row() { # MB
	local size=$1 image single bulk pages from
	quietly prepare_filters "$size"
	image=$(wal_of "SELECT streamfilter_save('filled')")
	sql -c "VACUUM _streamfilter.streamfilter_log, _streamfilter.streamfilter_image"
	single=$(($(wal_of "$(insert_singly filled)") - $(wal_of "$(insert_singly unlogged)")))
	bulk=$(wal_of "INSERT INTO filled SELECT generate_series(-2000000, -2000001 + $BULK)")
	quietly as_server "$(pg_bin)/pg_ctl" -D "$WORK/data" -w -m immediate stop
	quietly start_server
	from=$(date +%s%N)
	pages=$(pages_read)
	awk -v size="$size" -v image="$image" -v single="$single" -v singles="$SINGLE" -v bulk="$bulk" -v keys="$BULK" -v pages="$pages" \
		-v took="$(($(date +%s%N) - from))" 'BEGIN { printf "| %d MB | %.1f MB | %.1f MB | %.2f s | %.0f | %.2f |\n", size,
			image / 1048576, pages / 128, took / 1e9, single / singles, bulk / keys }'
}

main() {
	local size
	case ${1:-} in -*) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 0 ;; esac
	printf '| memory | WAL of an image | a first use reads | in | WAL for a key alone | in bulk |\n|---|---|---|---|---|---|\n'
	for size in "${SIZES[@]}"; do
		own_server "streamfilter.shared_memory = '$((size + 16))MB'" "full_page_writes = off" "autovacuum = off" \
			"streamfilter.min_log_size = '1TB'" "streamfilter.restore_workers = 0"
		row "$size"
		remove_work
	done
}

main "$@"
