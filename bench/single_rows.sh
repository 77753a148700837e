#!/usr/bin/env bash
# Rows that come one a transaction from many sessions, a fifth of them repeats of 600,000 keys: into a table without any check,
# with a unique index and ON CONFLICT DO NOTHING, and with a trigger of a logged and of an unlogged filter. Rounds alternate the
# ways; each ratio is the median of the rounds'. Prints a table in Markdown.
#
#   bench/single_rows.sh [SECONDS [ROUNDS [SESSIONS]]]     5 seconds, 5 rounds, 32 sessions: 3 minutes
#
# The extension must be installed for PG_CONFIG. Leave two cores idle.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=lib/own_server.sh
source "$ROOT/bench/lib/own_server.sh"

SECONDS_EACH=${1:-5} ROUNDS=${2:-5} SESSIONS=${3:-32}
WAYS=(plain unique logged unlogged)

create_objects() {
	sql <<-END
		CREATE TABLE plain (key bigint, payload text);
		CREATE TABLE "unique" (key bigint PRIMARY KEY, payload text);
		CREATE TABLE logged (key bigint, payload text);
		CREATE UNLOGGED TABLE keys AS SELECT i::bigint AS key, repeat('x', 60) AS payload FROM generate_series(1, 600000) i;
		CREATE FOREIGN TABLE seen (key bigint) SERVER streamfilter OPTIONS (memory '16MB', fpr '0.01');
		CREATE TRIGGER discard BEFORE INSERT ON logged FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
		CREATE TABLE unlogged (key bigint, payload text);
		CREATE FOREIGN TABLE seen_unlogged (key bigint) SERVER streamfilter
		  OPTIONS (memory '16MB', fpr '0.01', persistence 'unlogged');
		CREATE TRIGGER discard BEFORE INSERT ON unlogged FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_unlogged');
	END
}

empty_and_fill() { # before each round: every way finds the same
	sql <<-END
		TRUNCATE plain, "unique", logged, unlogged;
		TRUNCATE seen, seen_unlogged;
		$(for way in "${WAYS[@]}"; do say "INSERT INTO \"$way\" SELECT * FROM keys;"; done)
		VACUUM _streamfilter.streamfilter_log;
		CHECKPOINT;
	END
}

script() { # way
	say '\set key case when random(1, 5) = 1 then random(1, 600000) else random(1000000, 4000000000000000000) end'
	say "INSERT INTO \"$1\" VALUES (:key, repeat('x', 60)) $([ "$1" != unique ] || say 'ON CONFLICT DO NOTHING');"
}

ratio() { # way other
	awk -v way="$1" -v other="$2" '{ rate[$1, $2] = $3; rounds[$2] }
		END { for (r in rounds) print rate[way, r] / rate[other, r] }' "$WORK/tmp/rates" | median
}

main() {
	local round way
	case ${1:-} in -*) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 0 ;; esac
	own_server "streamfilter.shared_memory = '128MB'" "shared_buffers = '1GB'"
	quietly create_objects
	for ((round = 1; round <= ROUNDS; round++)); do
		quietly empty_and_fill
		for way in "${WAYS[@]}"; do
			script "$way" >"$WORK/tmp/script"
			say "$way $round $(rate "$WORK/tmp/script" "$SESSIONS" "$SECONDS_EACH" -M prepared)" >>"$WORK/tmp/rates"
		done
		WAYS=("${WAYS[@]:1}" "${WAYS[0]}")
	done
	printf '| single rows, %s sessions | rows a second | x no check | x ON CONFLICT |\n|---|---|---|---|\n' "$SESSIONS"
	for way in plain unique logged unlogged; do
		printf '| %s | %.0f | %.2f | %.2f |\n' "$way" "$(awk -v way="$way" '$1 == way { print $3 }' "$WORK/tmp/rates" | median)" \
			"$(ratio "$way" plain)" "$(ratio "$way" unique)"
	done
}

main "$@"
