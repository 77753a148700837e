# The demo's result. Sourced by test/demo.sh.
# shellcheck shell=bash disable=SC2034,SC2153 # the variables are shared by the demo's files

commas() { sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta' <<<"$1"; }

percent() { awk -v part="$1" -v all="$2" 'BEGIN { if (all > 0) printf "%.2f %%", 100 * part / all; else printf "-" }'; }

ratio() { awk -v a="$1" -v b="$2" -v digits="$3" 'BEGIN { if (b > 0) printf "%.*f", digits, a / b; else printf "-" }'; }

count_line() { # what, number, remark
	printf '  %-40s %14s  %10s %s\n' "$1" "$(commas "$2")" "$3" "$4"
}

report_sql() {
	printf '\nHave we seen this event before?  %s\nKey: %s\n\n' "$EVENTS_NAME" "$KEY_NAME"
	{ filter_sql && trigger_sql && insert_sql trigger; } | sed 's/^/  /'
}

report_counts() {
	local kept=${KEPT[trigger]} repeats=$((EVENTS - DISTINCT))
	printf '\n%-42s %14s\n' "WHAT THE FILTER DID" "events"
	count_line "events" "$EVENTS" "" ""
	count_line "  new (exact, by SQL)" "$DISTINCT" "$(percent "$DISTINCT" "$EVENTS")" "of the events"
	count_line "  repeats (exact, by SQL)" "$repeats" "$(percent "$repeats" "$EVENTS")" "of the events"
	count_line "kept" "$kept" "$(percent "$kept" "$EVENTS")" "of the events"
	count_line "discarded" "$((EVENTS - kept))" "$(percent $((EVENTS - kept)) "$EVENTS")" "of the events"
	count_line "wrongly discarded: new events lost" "$WRONGLY_DISCARDED" "$(percent "$WRONGLY_DISCARDED" "$DISTINCT")" \
		"of the new (false positives; asked for: at most $(awk -v fpr="$FPR" 'BEGIN { printf "%g", 100 * fpr }') %)"
	count_line "missed: repeats kept" "$MISSED" "$(percent "$MISSED" "$repeats")" "of the repeats (false negatives)"
}

report_memory() {
	printf '\n%-42s %14s\n' "MEMORY" "bytes"
	count_line "the filter" "$FILTER_BYTES" "$(ratio "$((FILTER_BYTES * 8))" "$DISTINCT" 1)" "bits per new event; $MEMORY_WHY"
	if [ -n "$UNIQUE_FAILED" ]; then
		printf '  %-40s %14s  %s\n' "UNIQUE index on the same keys" "impossible" "$UNIQUE_FAILED"
	else
		count_line "UNIQUE index on the same keys" "$INDEX_BYTES" "$(ratio "$INDEX_BYTES" "$FILTER_BYTES" 1) x" \
			"the filter ($(commas "$INDEX_BYTES_FRESH") bytes when built afresh)"
	fi
}

report_times() {
	local way us
	printf '\n%-42s %14s  %10s %14s\n' "THE SAME EVENTS, best of $ROUNDS runs" "seconds" "x plain" "events kept"
	for way in plain unique trigger seen; do
		us=${BEST_US[$way]:-}
		[ -n "$us" ] || continue
		printf '  %-40s %14s  %10s %14s\n' "$(way_title "$way")" "$(ratio "$us" 1000000 3)" \
			"$(ratio "$us" "${BEST_US[plain]}" 2)" "$(commas "${KEPT[$way]}")"
	done
}

check_counts() { # kept = new - wrongly discarded + missed, or the comparison itself is wrong
	[ "${KEPT[trigger]}" -eq $((DISTINCT - WRONGLY_DISCARDED + MISSED)) ] || die "the counts do not add up"
	[ -n "$UNIQUE_FAILED" ] || [ "${KEPT[unique]}" -eq "$DISTINCT" ] || die "the UNIQUE index disagrees with the truth"
}

report() {
	report_sql
	report_counts
	report_memory
	report_times
	check_counts
	printf '\n%s\n' "A wrongly discarded event is lost, a missed repeat is in the table twice. Where that may not be: a UNIQUE index."
}
