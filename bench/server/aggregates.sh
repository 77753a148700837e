# Distinct rows and their number, exactly and by filters. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

DISTINCT_MEMORY=(64MB 512kB)
SMALL_COUNTER=256kB # of bits, for linear counting: at ten million rows a thousandth of a hash table, and some .1 % off
WORKERS=2

aggregate_titles() {
	local memory
	title aggregates scan "scan"
	title aggregates distinct "SELECT DISTINCT"
	for memory in "${DISTINCT_MEMORY[@]}"; do
		title aggregates "distinct_$memory" "streamfilter_distinct, $memory"
	done
	title aggregates count_distinct "count(DISTINCT key)"
	title aggregates approx "approx_count_distinct(key), 1MB"
	title aggregates approx_small "approx_count_distinct(key), $SMALL_COUNTER"
	title aggregates approx_parallel "the same, up to $WORKERS workers"
	title aggregates approx_bits "approx_count_distinct(key, 'bloom(memory=1MB, k=1)')"
	title aggregates hll "hll_cardinality(hll_add_agg(hll_hash_bigint(key)))"
	title aggregates hll_most "the same, 2^17 registers of 5 bits"
	title aggregates approx_as_hll "approx_count_distinct(key, 'ell(memory=80kB)')"
	title aggregates datasketches "hll_sketch_distinct(key, 21)"
}

aggregate_source() { rows_sql numbers "$AGGREGATE_ROWS" | sql; }

# Records the first column of the last statement as its result.
aggregate_statement() { # case
	local memory=${1#distinct_}
	case $1 in
	scan) say "SELECT count(*) FROM numbers;" ;;
	distinct) say "SELECT count(*) FROM (SELECT DISTINCT key FROM numbers) AS firsts;" ;;
	distinct_*)
		say "SELECT count(*) FROM streamfilter_distinct(NULL::numbers, 'SELECT key FROM numbers',"
		say "  '$(value_text "$memory")');"
		;;
	count_distinct) say "SELECT count(DISTINCT key) FROM numbers;" ;;
	approx_small) say "SELECT approx_count_distinct(key, 'bloom(memory=$SMALL_COUNTER, k=1)') FROM numbers;" ;;
	approx_as_hll) say "SELECT approx_count_distinct(key, 'ell(memory=80kB)') FROM numbers;" ;;
	approx_bits) say "SELECT approx_count_distinct(key, 'bloom(memory=1MB, k=1)') FROM numbers;" ;;
	approx*) say "SELECT approx_count_distinct(key) FROM numbers;" ;;
	hll) say "SELECT hll_cardinality(hll_add_agg(hll_hash_bigint(key)))::bigint FROM numbers;" ;;
	hll_most) say "SELECT hll_cardinality(hll_add_agg(hll_hash_bigint(key), 17, 5))::bigint FROM numbers;" ;;
	datasketches) say "SELECT hll_sketch_distinct(key, 21)::bigint FROM numbers;" ;;
	esac
}

# The benchmark's filter, as a value of type streamfilter: "kind 'sbf', fpr '0.01'" becomes "sbf(memory=1MB, fpr=0.01)".
value_text() { # memory
	sed -E "s/^kind '([a-z0-9]+)'(, )?(.*)/\1(memory=$1\2\3)/; s/([a-z_]+) '([^']*)'/\1=\2/g" <<<"$FILTER"
}

aggregate_settings() { # case
	[ "$1" != approx_parallel ] || say "SET max_parallel_workers_per_gather = $WORKERS;"
}

aggregate_case() { # case
	timed "aggregate_settings $1" "say '\\timing on'" "aggregate_statement $1" >"$WORK/tmp/answer"
	awk '/^[0-9]+$/ { print "note rows", $1 } /^sample/' "$WORK/tmp/answer" | tee "$WORK/tmp/answer.noted"
	case $1 in
	distinct) say "note kilobytes $(peak_memory)" ;;
	distinct_*) say "note kilobytes $(kilobytes "${1#distinct_}")" ;;
	approx_small) say "note kilobytes $(kilobytes $SMALL_COUNTER)" ;;
	hll_most | approx_as_hll) say "note kilobytes 80" ;; # of 6 bits, hll 2.17 makes no number of them
	approx*) say "note kilobytes 1024" ;;
	hll) say "note kilobytes 1.25" ;; # 2^11 registers of 5 bits
	datasketches) say "note kilobytes 1024" ;; # 2^21 registers of 4 bits
	esac
	case $1 in
	approx* | hll* | datasketches) note_error "$(awk '/^note rows/ { print $3 }' "$WORK/tmp/answer.noted")" ;;
	esac
}

note_error() { # counted: the error of the count, in per cent
	local exact
	exact=$(note_of aggregates count_distinct "$AGGREGATE_ROWS" rows)
	[ -z "$exact" ] || [ -z "$1" ] || awk -v n="$1" -v e="$exact" 'BEGIN { printf "note off_percent %.3f\n", 100 * (n / e - 1) }'
}

# peer CASE EXTENSION ADVICE: adds it to the cases if it is installed.
peer() {
	if [ -n "$(sql -c "SELECT 1 FROM pg_available_extensions WHERE name = '$2'")" ]; then
		sql -c "CREATE EXTENSION IF NOT EXISTS $2"
		cases+=("$1")
	else
		note aggregates "$1" "$AGGREGATE_ROWS" skipped "extension $2 is not installed ($3)"
	fi
}

kilobytes() { sql -c "SELECT pg_size_bytes('$1') / 1024"; }

peak_memory() { # of the hash table of SELECT DISTINCT
	sql -c "EXPLAIN (ANALYZE, FORMAT JSON) SELECT DISTINCT key FROM numbers" |
		awk -F ': ' '/Peak Memory Usage/ { kb += $2 } END { print kb }'
}

note_of() { # section case size name
	awk -F '\t' -v s="$1" -v c="$2" -v n="$3" -v name="$4" '$1 == s && $2 == c && $3 == n && $4 == name { print $5 }' \
		"$RESULTS/notes"
}

aggregate_goals() {
	local n=$AGGREGATE_ROWS exact memory
	exact=$(note_of aggregates distinct "$n" kilobytes)
	for memory in "${DISTINCT_MEMORY[@]}"; do
		goal 5.6 "SELECT DISTINCT: x streamfilter_distinct, $memory" \
			"$(per_round ratio aggregates "$n" distinct "distinct_$memory")" least 1 x
		memory_goal "$exact" "streamfilter_distinct, $memory" "$(note_of aggregates "distinct_$memory" "$n" kilobytes)"
	done
	goal 5.6 "count(DISTINCT): x approx_count_distinct" "$(per_round ratio aggregates "$n" count_distinct approx)" least 1 x
	goal 5.6 "count(DISTINCT): x approx_count_distinct, $SMALL_COUNTER" \
		"$(per_round ratio aggregates "$n" count_distinct approx_small)" least 1 x
	goal 5.6 "approx_count_distinct: x the same with up to $WORKERS workers" \
		"$(per_round ratio aggregates "$n" approx approx_parallel)" least 1 x
	memory_goal "$exact" "approx_count_distinct, $SMALL_COUNTER" "$(note_of aggregates approx_small "$n" kilobytes)"
}

memory_goal() { # exact what filter
	[ -n "$1" ] && [ -n "$3" ] || return 0
	goal 5.6 "memory of a hash table of all keys: x $2" "$(awk -v a="$1" -v b="$3" 'BEGIN { print a / b }')" least 1000 x
}

section_aggregates() {
	local round case cases
	aggregate_titles
	stage "  $(commas "$AGGREGATE_ROWS") rows" aggregate_source
	cases=(scan distinct "${DISTINCT_MEMORY[@]/#/distinct_}" count_distinct approx approx_small approx_parallel approx_bits)
	peer hll hll "postgresql-15-hll or the like"
	[[ " ${cases[*]} " != *" hll "* ]] || cases+=(hll_most approx_as_hll)
	peer datasketches datasketches "no package of Debian; see docs/benchmarks.md"
	for ((round = 1; round <= ROUNDS; round++)); do
		for case in "${cases[@]}"; do
			measure aggregates "$case" "$AGGREGATE_ROWS" "$round" aggregate_case "$case"
		done
	done
	aggregate_goals
	sql -c "DROP TABLE numbers"
}
