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
	{ filter_sql trigger && trigger_sql; } | sed 's/^/  /'
	printf '\n  %s sessions in turn, each in transactions of %s events:\n  %s;\n' "$SESSIONS" "$(commas "$BATCH")" \
		"$(insert_sql trigger)"
}

report_counts() {
	local kept=${KEPT[trigger]} repeats=$((EVENTS - DISTINCT))
	printf '\n%-42s %14s\n' "WHAT THE FILTER DID" "events"
	count_line "events" "$EVENTS" "" ""
	count_line "  new (exact, by SQL)" "$DISTINCT" "$(percent "$DISTINCT" "$EVENTS")" "of the events"
	count_line "  repeats (exact, by SQL)" "$repeats" "$(percent "$repeats" "$EVENTS")" "of the events"
	count_line "kept" "$kept" "$(percent "$kept" "$EVENTS")" "of the events"
	count_line "discarded" "$((EVENTS - kept))" "$(percent $((EVENTS - kept)) "$EVENTS")" "of the events"
	count_line "lost: no event of this key was kept" "${LOST[trigger]}" "$(percent "${LOST[trigger]}" "$DISTINCT")" \
		"of the new (false positives; asked for: at most $(awk -v fpr="$FPR" 'BEGIN { printf "%g", 100 * fpr }') %)"
	count_line "missed: kept beyond one event of its key" "${MISSED[trigger]}" "$(percent "${MISSED[trigger]}" "$repeats")" \
		"of the repeats (false negatives)"
}

report_kinds() {
	local kind way repeats=$((EVENTS - DISTINCT))
	printf '\n%-42s %14s  %10s\n' "OTHER KINDS IN AS MUCH MEMORY" "lost" "missed"
	printf '  %-40s %14s\n' "at most fpr, which is" "$(percent "$FPR" 1)"
	printf '  %-40s %14s  %10s\n' "$KIND$([ "$KIND" = "$FILTER_KIND" ] || printf ', which is %s here' "$FILTER_KIND")" \
		"$(percent "${LOST[trigger]}" "$DISTINCT")" "$(percent "${MISSED[trigger]}" "$repeats")"
	for kind in "${COMPARED[@]}"; do
		way=trigger-$kind
		[ "$kind" != "$KIND" ] || continue
		if [ -n "${REFUSED[$way]:-}" ]; then
			printf '  %-40s %s\n' "$kind" "refused: ${REFUSED[$way]}"
		else
			printf '  %-40s %14s  %10s\n' "$kind" "$(percent "${LOST[$way]}" "$DISTINCT")" \
				"$(percent "${MISSED[$way]}" "$repeats")"
		fi
	done
	[ "$KIND" != auto ] || report_why
}

# The reader sees two kinds in the same memory, and asks why auto did not take the better one.
report_why() {
	local keys why
	keys=$(commas "$DISTINCT")
	if [[ "${OPTION_ARGUMENTS[*]-}" != *keys=* ]]; then
		why="Nobody told auto how many keys come, so it took $FILTER_KIND, which keeps fpr for ever and forgets the oldest keys."
		why+=" bloom was told ($keys) and forgets none; with more keys it would lose more."
		why+=" Tell auto, too: --option keys=$DISTINCT"
	elif [ "$FILTER_KIND" = bloom ]; then
		why="auto was told how many keys come, as bloom was; both are the same."
	else
		why="auto was told how many keys come: bloom has no room for them at this fpr, $FILTER_KIND keeps fpr and forgets some."
	fi
	fold -s -w 116 <<<"$why" | sed 's/^/  /; s/ *$//'
}

report_settled() {
	printf '\n%-42s %14s\n' "DIVERTED AND SETTLED" "events"
	say "  $(settle_sql);"
	count_line "diverted by the filter" "$((RESTORED + CONFIRMED + WAITING))" "" ""
	count_line "  brought back" "$RESTORED" "" "the filter took them for repeats"
	count_line "removed from the table" "$DUPLICATES" "" "the filter had forgotten their key"
	printf '  %-40s %14s  %10s %s\n' "rows lost, rows twice, after settling" "${LOST[settled]} and ${MISSED[settled]}" "" \
		"settling took $(ratio "$SETTLE_US" 1000000 3) seconds, the inserts $(ratio "${BEST_US[settled]}" 1000000 3)"
}

report_memory() {
	# shellcheck disable=SC2154 # keys of an array
	local log=$((LOG_BYTES[trigger] > LOG_BYTES[plain] ? LOG_BYTES[trigger] - LOG_BYTES[plain] : 0)) all
	all=$((FILTER_BYTES + log))
	printf '\n%-42s %14s\n' "MEMORY" "bytes"
	count_line "the filter" "$FILTER_BYTES" "$(ratio "$((FILTER_BYTES * 8))" "$DISTINCT" 1)" "bits per new event; $MEMORY_WHY"
	count_line "its sessions, for their transactions" "$log" "" "until each commits; the most that was seen, all sessions"
	count_line "keys in flight, for all filters" "$IN_FLIGHT_BYTES" "" "shared, set by streamfilter.max_in_flight"
	if [ -n "$UNIQUE_FAILED" ]; then
		printf '  %-40s %14s  %s\n' "UNIQUE index on the same keys" "impossible" "$UNIQUE_FAILED"
	else
		count_line "UNIQUE index on the same keys" "$INDEX_BYTES" "$(ratio "$INDEX_BYTES" "$all" 1) x" \
			"the filter with its sessions ($(commas "$INDEX_BYTES_FRESH") bytes when built afresh)"
	fi
}

plot_errors() { # picture; empty: into the terminal
	gnuplot -e "data='$WORK/errors.dat'; picture='$1'; what='errors along the stream, $FILTER_KIND in $MEMORY'" \
		"$ROOT/test/demo/errors.gp"
}

report_curve() {
	local picture=$ROOT/build/demo/errors.png
	say ""
	plot_errors ''
	as_owner mkdir -p "$(dirname "$picture")"
	if plot_errors "$WORK/errors.png" && as_owner cp "$WORK/errors.png" "$picture"; then
		say "The same as a picture: build/demo/errors.png"
	fi
}

report_times() {
	local way us runs="best of $ROUNDS runs"
	printf '\n%-42s %14s  %10s %14s\n' "THE SAME EVENTS, ${runs/#best of 1 runs/one run}" "seconds" "x plain" "events kept"
	for way in plain unique trigger seen; do
		us=${BEST_US[$way]:-}
		[ -n "$us" ] || continue
		printf '  %-40s %14s  %10s %14s\n' "$(way_title "$way")" "$(ratio "$us" 1000000 3)" \
			"$(ratio "$us" "${BEST_US[plain]}" 2)" "$(commas "${KEPT[$way]}")"
	done
}

check_counts() { # kept = new - lost + missed, or the comparison itself is wrong
	[ "${KEPT[trigger]}" -eq $((DISTINCT - LOST[trigger] + MISSED[trigger])) ] || die "the counts do not add up"
	[ "${KEPT[settled]}" -eq "$DISTINCT" ] || die "the settled table disagrees with the truth"
	[ -n "$UNIQUE_FAILED" ] || [ "${KEPT[unique]}" -eq "$DISTINCT" ] || die "the UNIQUE index disagrees with the truth"
}

report() {
	report_sql
	report_counts
	report_kinds
	report_settled
	report_curve
	report_memory
	report_times
	check_counts
	printf '\n%s\n' "A lost event is in no table, a missed repeat is there twice. Where that may not be: divert and settle, or a UNIQUE index."
	report_next
}

report_next() {
	printf '\n%s\n' "THREE PICTURES"
	say "  docs/pictures/row.svg          the life of a row: where it passes, waits, or is discarded"
	say "  docs/pictures/costs.svg        what five million rows cost with a filter and with a UNIQUE index"
	say "  docs/pictures/memory.svg       which keys, memory and rate go together: a chart to put a dot on"
	printf '\n%s\n' "WHAT TO TYPE NEXT"
	say "  test/demo.sh --key COLUMN,COLUMN FILE.csv      the same with events of yours"
	say "  less README.md                                 from 'A first session': a filter in a server of yours, in ten statements"
	say "  less docs/tutorial.md                          twenty minutes with a filter: its errors, sizes, modes"
}
