#!/usr/bin/env bash
# streamfilter and other programs that answer "seen before?" or "how many?": the same stream on the same machine, in
# one table of rows a second, bytes and errors. See --help.

# shellcheck disable=SC2034,SC2153 # variables are shared by the benchmark's files
# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
for name in record server peers; do
	# shellcheck source=/dev/null
	source "$ROOT/bench/server/$name.sh"
done

ROWS=1000000 REDIS_ROWS='' BLOOM_MODULE='' LIBBF='' INSTALLED='' OUTPUT=''
SHARED_MEMORY=300MB HUGE_PAGES=off

usage() {
	cat <<-'END'
		Usage: bench/peers.sh [OPTION...]

		Puts a stream, 49 % of whose rows are new, through streamfilter, a UNIQUE index, redis and what else is there, and prints
		a table: rows a second, bytes that know the keys, new rows that were lost, repeats that stayed. Then the same for
		counting. Installs what is missing of PostgreSQL, builds and installs streamfilter, and uses servers of its own below
		/tmp, which are gone afterwards. What is not installed is left out, and named. Debian 12 or 13, as root or with sudo.

		  --rows N             of the stream, default: 1000000
		  --redis-bloom FILE   the Bloom module of redis, redisbloom.so
		  --libbf DIR          sources of libbf (mavam/libbf): its Bloom filter, and the core of streamfilter beside it
		  --installed          streamfilter is installed already: nothing is built
		  --help               this text

		redis-server, postgresql-NN-hll, python3-redis and the Python package datasketches are used where they are.
	END
}

parse_arguments() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) usage && exit 0 ;;
		--installed) INSTALLED=yes ;;
		--rows | --redis-bloom | --libbf)
			[ -n "${2:-}" ] || die "$1 needs a value" "See --help."
			case $1 in
			--rows) ROWS=$2 ;;
			--redis-bloom) BLOOM_MODULE=$(realpath "$2") ;;
			--libbf) LIBBF=$(realpath "$2") ;;
			esac
			shift
			;;
		*) die "unknown option: $1" "See --help." ;;
		esac
		shift
	done
	[[ $ROWS =~ ^[1-9][0-9]{3,8}$ ]] || die "--rows $ROWS is not a number of rows"
	[ -z "$BLOOM_MODULE" ] || [ -f "$BLOOM_MODULE" ] || die "$BLOOM_MODULE is not there"
	[ -z "$LIBBF" ] || [ -f "$LIBBF/bf/all.hpp" ] || die "$LIBBF has no bf/all.hpp"
}

# ---- the stream ----------------------------------------------------------------------------------------

create_stream() {
	{
		rows_sql stream "$ROWS"
		say "COPY stream TO '$WORK/tmp/keys';"
	} | sql
	DISTINCT=$(sql -c 'SELECT count(DISTINCT key) FROM stream')
}

line() { # name seconds bytes lost stayed
	awk -v name="$1" -v s="$2" -v bytes="$3" -v lost="$4" -v stayed="$5" -v rows="$ROWS" -v new="$DISTINCT" 'BEGIN {
		printf "| %s | %.2f | %d | %.1f | %.3f %% | %.3f %% |\n", name, s, rows / s, bytes * 8 / new, 100 * lost / new,
			100 * stayed / (rows - new) }' >>"$WORK/tmp/table"
}

left_out() { say "$1" >>"$WORK/tmp/left_out"; }

seconds_of() { awk '/^sample/ { print $2 }' "$WORK/job.log"; }

# Both errors, computed from a table of kept rows.
kept_line() { # name bytes
	local lost stayed
	lost=$(sql -c "SELECT $DISTINCT - count(DISTINCT key) FROM kept")
	stayed=$(sql -c "SELECT count(*) - count(DISTINCT key) FROM kept")
	line "$1" "$(seconds_of)" "$2" "$lost" "$stayed"
}

insert_sql() {
	say "\\timing on"
	say "INSERT INTO kept SELECT key FROM stream${1:-};"
}

# Transactions have a thousand rows: within one, a filter makes no error.
batches_sql() {
	say "CREATE OR REPLACE PROCEDURE send() LANGUAGE plpgsql AS \$\$"
	say "BEGIN FOR i IN 0 .. $ROWS / 1000 LOOP"
	say "  INSERT INTO kept SELECT key FROM stream WHERE ctid >= format('(%s,0)', i * 5)::tid AND ctid < format('(%s,0)', i * 5 + 5)::tid;"
	say "  COMMIT; EXIT WHEN i * 5 > (SELECT relpages FROM pg_class WHERE oid = 'stream'::regclass);"
	say "END LOOP; END \$\$;"
	say "\\timing on"
	say "CALL send();"
}

empty_table_sql() { say "DROP TABLE IF EXISTS kept; CREATE TABLE kept (key bigint);"; }

# ---- inside PostgreSQL ---------------------------------------------------------------------------------

filter_case() { # title kind options
	{
		empty_table_sql
		FILTER=$2 filter_sql seen "$3" 'fpr '"'0.01'"
		discard_sql kept seen
	} | sql >/dev/null
	stage "  $1" timed batches_sql
	kept_line "$1" "$(sql -c "SELECT memory FROM streamfilter_stats WHERE filter = 'seen'::regclass")"
}

unique_case() {
	{
		empty_table_sql
		say "CREATE UNIQUE INDEX known ON kept (key);"
	} | sql
	stage "  UNIQUE, ON CONFLICT DO NOTHING" timed "insert_sql ' ON CONFLICT DO NOTHING'"
	kept_line "UNIQUE, ON CONFLICT DO NOTHING" "$(sql -c "SELECT pg_relation_size('known')")"
}

# An exclusion constraint is the only way to make a hash index refuse a key.
hash_case() {
	{
		empty_table_sql
		say "ALTER TABLE kept ADD CONSTRAINT known EXCLUDE USING hash (key WITH =);"
	} | sql
	stage "  hash index, ON CONFLICT DO NOTHING" timed "insert_sql ' ON CONFLICT DO NOTHING'"
	kept_line "hash index (EXCLUDE), ON CONFLICT DO NOTHING" "$(sql -c "SELECT pg_relation_size('known')")"
}

# Like stream processors: the exact keys of the last rows, in a store from which older ones are removed now and then.
# The planner is told what it cannot know about a table that was empty.
window_sql() {
	local batches=$((ROWS / 1130))
	local these="ctid >= format('(%s,0)', i * 5)::tid AND ctid < format('(%s,0)', i * 5 + 5)::tid"
	say "CREATE OR REPLACE PROCEDURE send() LANGUAGE plpgsql AS \$\$"
	say "BEGIN FOR i IN 0 .. (SELECT relpages FROM pg_class WHERE oid = 'stream'::regclass) / 5 LOOP"
	say "  INSERT INTO kept SELECT DISTINCT key FROM stream WHERE $these"
	say "    AND NOT EXISTS (SELECT FROM known WHERE known.key = stream.key AND batch > i - $((batches / 2)));"
	say "  INSERT INTO known SELECT DISTINCT key, i FROM stream WHERE $these"
	say "    ON CONFLICT (key) DO UPDATE SET batch = excluded.batch;"
	say "  IF i % 64 = 63 THEN DELETE FROM known WHERE batch <= i - $((batches / 2)); END IF;"
	say "  COMMIT;"
	say "END LOOP; END \$\$;"
	say "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;"
	say "\\timing on"
	say "CALL send();"
}

window_case() {
	{
		empty_table_sql
		say "DROP TABLE IF EXISTS known; CREATE TABLE known (key bigint PRIMARY KEY, batch int);"
	} | sql
	stage "  a window of half the rows" timed window_sql
	kept_line "the keys of a window of half the rows, in a table" "$(sql -c "SELECT pg_total_relation_size('known')")"
	sql -c "DROP TABLE known"
}

plain_case() {
	empty_table_sql | sql
	stage "  INSERT of all rows" timed batches_sql
	kept_line "INSERT of all rows, nothing known" 0
}

# ---- redis -----------------------------------------------------------------------------------------------

redis_used() { redis-cli -s "$WORK/tmp/redis.sock" info memory | tr -d '\r' | awk -F ':' '$1 == "used_memory" { print $2 }'; }

# Reads names and values, a line each, from all versions of the module.
bloom_info() { redis-cli -s "$WORK/tmp/redis.sock" BF.INFO seen | grep -A1 -x "$1" | tail -n 1; }

redis_case() {
	local before
	if ! command -v redis-server >/dev/null || ! command -v redis-cli >/dev/null; then
		left_out "redis: its package is not installed (redis-server)"
		return
	fi
	redis_commands
	redis_start
	before=$(redis_used)
	stage "  redis, SET NX" redis_pipe
	line "redis, SET NX, pipelined" "$(seconds_of)" $(($(redis_used) - before)) \
		$((DISTINCT - $(redis-cli -s "$WORK/tmp/redis.sock" dbsize))) 0
	redis_end
	if [ -z "$BLOOM_MODULE" ]; then
		left_out "redis with its Bloom module: --redis-bloom was not given"
		return
	fi
	redis_commands seen
	redis_start --loadmodule "$BLOOM_MODULE" || die "redis does not start with $BLOOM_MODULE"
	redis-cli -s "$WORK/tmp/redis.sock" BF.RESERVE seen 0.01 "$DISTINCT" >/dev/null
	stage "  redis, BF.ADD" redis_pipe
	# A Bloom filter misses no repeat, so the rows it did not take were lost.
	line "redis, BF.ADD, pipelined" "$(seconds_of)" "$(bloom_info Size)" \
		$((DISTINCT - $(bloom_info 'Number of items inserted'))) 0
	redis_end
}

# ---- libraries, without a server --------------------------------------------------------------------------

libbf_program() {
	cat >"$WORK/tmp/libbf.cpp" <<-'END'
		#include <bf/all.hpp>
		#include <chrono>
		#include <cstdio>
		#include <cstdlib>
		#include <fstream>
		#include <unordered_set>
		#include <vector>
		int main(int, char** arguments) {
		  std::vector<long> keys;
		  std::ifstream in(arguments[1]);
		  for (long key; in >> key;) keys.push_back(key);
		  const size_t distinct = std::strtoul(arguments[2], nullptr, 10);
		  bf::basic_bloom_filter filter(0.01, distinct);
		  std::vector<char> seen(keys.size());
		  const auto start = std::chrono::steady_clock::now();
		  for (size_t i = 0; i < keys.size(); ++i) {
		    seen[i] = filter.lookup(bf::wrap(keys[i])) > 0;
		    if (!seen[i]) filter.add(bf::wrap(keys[i]));
		  }
		  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
		  std::unordered_set<long> truth;
		  size_t lost = 0, stayed = 0;
		  for (size_t i = 0; i < keys.size(); ++i) {
		    const bool is_new = truth.insert(keys[i]).second;
		    lost += is_new && seen[i];
		    stayed += !is_new && !seen[i];
		  }
		  std::printf("sample %f s\n%zu %zu %zu\n", took.count(), filter.storage().size() / 8, lost, stayed);
		}
	END
	mapfile -t sources < <(find "$LIBBF/src" -name '*.cpp' ! -path '*/test/*' ! -name bf.cpp)
	g++ -std=c++17 -O2 -w -I "$LIBBF" -o "$WORK/tmp/libbf" "$WORK/tmp/libbf.cpp" "${sources[@]}"
}

libbf_case() {
	if [ -z "$LIBBF" ]; then
		left_out "libbf: --libbf was not given"
		return
	fi
	stage "  libbf: building" libbf_program
	stage "  libbf" "$WORK/tmp/libbf" "$WORK/tmp/keys" "$DISTINCT"
	# shellcheck disable=SC2046 # three words
	line "libbf, Bloom filter, in a program" "$(seconds_of)" $(tail -n 1 "$WORK/job.log")
}

# The same without a server: neither side includes the cost of the function call and of rows.
evaluate_case() { # prototype
	local answer
	answer=$(sql -F ' ' -c "SELECT ns_per_row * rows / 1e9, memory, false_positives, false_negatives
		FROM streamfilter_evaluate('SELECT key FROM stream', ARRAY['$1'::streamfilter])")
	# shellcheck disable=SC2086 # four words
	line "streamfilter as a value, $1" $answer
}

# ---- counting ------------------------------------------------------------------------------------------

count_case() { # title bytes expression
	stage "  $1" timed "count_sql \"$3\""
	awk -v name="$1" -v s="$(seconds_of)" -v bytes="$2" -v rows="$ROWS" -v new="$DISTINCT" -v found="$(grep -E '^[0-9.]+$' "$WORK/job.log")" \
		'BEGIN { printf "| %s | %.2f | %d | %s | %+.3f %% |\n", name, s, rows / s, bytes, 100 * (found / new - 1) }' >>"$WORK/tmp/counts"
}

count_sql() {
	say "\\timing on"
	say "SELECT $1 FROM stream;"
}

counting() {
	count_case "count(DISTINCT)" "all keys" "count(DISTINCT key)"
	count_case "approx_count_distinct, ell" 1048576 "approx_count_distinct(key)"
	count_case "approx_count_distinct, ell, 64 kB" 65536 "approx_count_distinct(key, 'ell(memory=64kB)')"
	if sql -c "CREATE EXTENSION IF NOT EXISTS hll" 2>/dev/null; then
		count_case "hll, 2^11 registers" "$(hll_bytes)" "hll_cardinality(hll_add_agg(hll_hash_bigint(key)))"
	else
		left_out "hll: its package is not installed (postgresql-NN-hll)"
	fi
	if sql -c "CREATE EXTENSION IF NOT EXISTS datasketches" 2>/dev/null; then
		count_case "datasketches, 2^21 registers" 1048576 \
			"hll_sketch_distinct(key, 21)"
	else
		left_out "datasketches: the extension is not installed"
	fi
}

hll_bytes() { sql -c "SELECT pg_column_size(hll_add_agg(hll_hash_bigint(key))) FROM stream"; }

# ---- the run -----------------------------------------------------------------------------------------

print_tables() {
	printf '\n%s rows, %s of them new; %s\n\n' "$ROWS" "$DISTINCT" "$("$PG_CONFIG" --version)"
	say "| | seconds | rows/s | bits per key | lost, of the new | stayed, of the repeats |"
	say "|---|---|---|---|---|---|"
	cat "$WORK/tmp/table"
	printf '\n'
	say "| counting | seconds | rows/s | bytes | error |"
	say "|---|---|---|---|---|"
	cat "$WORK/tmp/counts"
	[ ! -s "$WORK/tmp/left_out" ] || sed 's/^/left out: /' "$WORK/tmp/left_out"
}

finish() {
	redis_end
	remove_work
}

main() {
	parse_arguments "$@"
	trap finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	[ -z "$INSTALLED" ] || find_installed
	# shellcheck disable=SC2119
	prepare
	if [ -z "$INSTALLED" ]; then
		stage "building streamfilter" make_here -j2
		stage "installing it" install_extension
	fi
	stage "starting a server" create_benchmark_server
	stage "a stream of $ROWS rows" create_stream
	DISTINCT=$(sql -c 'SELECT count(DISTINCT key) FROM stream')
	plain_case
	unique_case
	hash_case
	window_case
	filter_case "streamfilter, clq" "kind 'clq'" "$((DISTINCT * 5 / 2))"
	filter_case "streamfilter, bloom" "kind 'bloom', keys '$DISTINCT'" "$((DISTINCT * 10 / 8))"
	redis_case
	libbf_case
	evaluate_case "bloom(keys=$DISTINCT, fpr=0.01)"
	counting
	print_tables
}

main "$@"
