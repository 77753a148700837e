# The core without a server, and the limit of the memory: bench/micro/core_speed.cpp. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

core_run() { # the output of Google Benchmark, as JSON
	"$ROOT/build/bench/core_speed" --sizes="$(joined "${CORE_SIZES[@]}" | tr -d ' ')" --benchmark_min_time="$CORE_SECONDS" \
		--benchmark_repetitions="$ROUNDS" --benchmark_out="$WORK/tmp/core.json" --benchmark_out_format=json
}

# Repetitions become rounds; cases that the core skipped become notes.
core_record() {
	local name case size round value unit reason
	while IFS=$'\t' read -r name round value unit reason; do
		IFS=/ read -r case how size pages <<<"$name"
		case=$case/$how/$pages
		title core "$case" "$(printf '%-14s %-10s %s pages' "${case%%/*}" "$how" "$pages")"
		if [ -n "$reason" ]; then
			[ "$round" -gt 1 ] || note core "$case" "$size" skipped "$reason"
		else
			record core "$case" "$size" "$round" "$value" "$unit"
		fi
	done < <(jq -r '.benchmarks[] | select(.run_type == "iteration")
		| [.name, (.repetition_index // 0) + 1, .cpu_time // 0, .time_unit // "ns", .error_message // ""] | @tsv' \
		"$WORK/tmp/core.json")
}

core_goals() {
	local size pages kind limits
	kind=$(sed -nE "s/.*kind '([a-z0-9]+)'.*/\1/p" <<<"$FILTER")
	[[ $FILTER != *"layout 'blocked'"* ]] || kind+=-blocked
	for size in "${CORE_SIZES[@]}"; do
		for pages in small huge; do
			limits="$kind, $size, $pages pages"
			goal 5.4 "$limits, key by key: x the limit, chained" \
				"$(per_round ratio core "$size" "$kind/chained/$pages" "limit/chained/$pages")" most 1.25 x
			goal 5.4 "$limits, 16 prefetches in flight: x the limit, the same" \
				"$(per_round ratio core "$size" "$kind/prefetched/$pages" "limit/prefetched/$pages")" most 2 x
		done
	done
}

section_core() {
	job "  build/bench/core_speed, ${CORE_SIZES[*]}" core_run
	if [ "$JOB_STATUS" -ne 0 ]; then
		printf '  failed\n'
		tail -n 20 "$WORK/job.log" >&2
		FAILURES=$((FAILURES + 1))
		return
	fi
	printf '\n'
	core_record
	core_goals
}
