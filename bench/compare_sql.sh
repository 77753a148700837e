#!/usr/bin/env bash
# The cases of bench/compare by SQL: as values, by streamfilter_evaluate(), and each EVERY-th as a filter with options, a row a
# transaction. What a text becomes, what is refused, and each count of errors must be those of the library. Prints how many cases
# were compared, and what differs; status 1 if anything does.
#
#   bench/compare_sql.sh [--quick] [EVERY]     every 400th case as a filter; --quick: short streams
#
# The extension must be installed for PG_CONFIG.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=lib/own_server.sh
source "$ROOT/bench/lib/own_server.sh"

QUICK=()
[ "${1:-}" != --quick ] || { QUICK=(--quick) && shift; }
EVERY=${1:-400}

make -s -C "$ROOT" PG_CONFIG="$PG_CONFIG" build/bench/compare_cases
own_server "max_wal_size = '4GB'" "synchronous_commit = off"
"$ROOT/build/bench/compare_cases" "$WORK/tmp" "${QUICK[@]}"
chmod a+r "$WORK"/tmp/*.txt
sql <"$ROOT/bench/server/compare.sql"
sql <<-END
	\\copy rows FROM '$WORK/tmp/rows.txt'
	\\copy cases (stream, definition, chosen, rows, distinct_rows, false_positives, false_negatives) FROM '$WORK/tmp/cases.txt'
	CREATE INDEX ON rows (stream, n);
	ANALYZE;
	SET client_min_messages = error;
	SELECT 'values: ' || compare_values() || ' of ' || count(*) || ', refused: ' || count(*) FILTER (WHERE chosen IS NULL) FROM cases;
	\\echo filters:
	CALL compare_relations($EVERY);
	SELECT 'differs: ' || differences::text FROM differences LIMIT 20;
END
[ "$(sql <<<'SELECT count(*) FROM differences')" = 0 ]
