# The tables that a run ends with, and run.json. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153 # the variables are shared by the benchmark's files

machine() { # lines "name: value"
	awk -F ': *' '/^model name/ { print "processor: " $2; exit }' /proc/cpuinfo
	say "cores: $(nproc)"
	awk '/^MemTotal/ { printf "memory: %.1f GB\n", $2 / 1048576 }' /proc/meminfo
	say "kernel: $(uname -sr)"
	say "pages of the server's shared memory: $(page_size)"
	say "transparent huge pages: $(sed 's/.*\[\(.*\)\].*/\1/' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null || say unknown)"
	say "load at start: $LOAD"
	say "load at end: $(cut -d ' ' -f 1-3 /proc/loadavg)"
	say "server: $("$PG_CONFIG" --version)"
	say "compiler: $(g++ --version | head -n 1)"
	say "revision: $(as_owner git -C "$ROOT" describe --always --dirty 2>/dev/null || say unknown)"
	say "filter: $FILTER, memory $MEMORY"
	say "settings: $(server_settings)"
}

server_settings() {
	local names="'shared_buffers', 'work_mem', 'max_wal_size', 'wal_level', 'fsync', 'synchronous_commit', 'autovacuum', 'jit',
		'max_parallel_workers_per_gather', 'streamfilter.shared_memory', 'streamfilter.max_in_flight'"
	sql -c "SELECT string_agg(name || ' ' || current_setting(name), ', ' ORDER BY name) FROM pg_settings WHERE name IN ($names)"
}

section_heading() {
	case $1 in
	bulk) say "BULK LOADS (fsync off)" ;;
	single) say "TRANSACTIONS OF ONE ROW (fsync on; size: sessions)" ;;
	batch) say "TRANSACTIONS OF $BATCH ROWS (fsync on; size: sessions)" ;;
	wal) say "WRITE-AHEAD LOG PER TRANSACTION (size: rows in it)" ;;
	memory) say "MEMORY PER KEY IN FLIGHT (size: keys)" ;;
	sessions) say "THROUGHPUT OF SESSIONS ON ONE FILTER (fsync off; size: sessions)" ;;
	aggregates) say "DISTINCT ROWS AND THEIR NUMBER" ;;
	core) say "THE CORE, CPU TIME PER KEY (size: of the filter)" ;;
	idle_select) say "SELECT BY PRIMARY KEY (size: sessions)" ;;
	idle_insert) say "INSERT OF ONE ROW (size: sessions)" ;;
	distributed) say "A FILTER ON OTHER SERVERS, ALL ON THIS MACHINE WITH $(nproc) CORES" ;;
	distributed_rows) say "THE SAME, A CALL FOR EACH ROW" ;;
	peers) say "PEERS" ;;
	*) say "$1" ;;
	esac
}

reference_of() { # section case: the case that this one is compared with
	case $1/$2 in
	single/*_async | batch/*_async) say plain_async ;;
	bulk/* | single/* | batch/* | wal/*) say plain ;;
	memory/*) say unlogged ;;
	sessions/*) say insert ;;
	aggregates/*) say distinct ;;
	distributed/* | distributed_rows/*) say here ;;
	idle_*) say without ;;
	core/*) say "limit/chained/${2##*/}" ;;
	esac
}

notes_of() { # section case size
	awk -F '\t' -v s="$1" -v c="$2" -v n="$3" \
		'$1 == s && $2 == c && $3 == n { printf "%s%s %s", sep, $4, $5; sep = ", " }' "$RESULTS/notes"
}

write_medians() { # section case size median unit ratio
	local section case size value unit
	while IFS=$'\t' read -r section case _; do
		while IFS=$'\t' read -r size unit; do
			value=$(median_of "$section" "$case" "$size")
			printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$section" "$case" "$size" "$value" "$unit" \
				"$(per_round ratio "$section" "$size" "$case" "$(reference_of "$section" "$case")")"
		done < <(awk -F '\t' -v s="$section" -v c="$case" \
			'$1 == s && $2 == c && !seen[$3]++ { print $3 "\t" $6 }' "$RESULTS/samples")
	done <"$RESULTS/titles" >"$RESULTS/medians"
}

per_row() { # section size value unit: nanoseconds per row, where the size is rows
	case $1 in
	bulk | aggregates | peers | distributed | distributed_rows) [ "$4" != s ] || awk -v n="$2" -v s="$3" 'BEGIN { printf "%.0f", s / n * 1e9 }' ;;
	esac
}

report_section() { # section
	local section=$1 case size value unit ratio
	printf '\n%s\n  %10s  %-48s %12s %-6s %9s %8s  %s\n' "$(section_heading "$section")" size case median unit "ns a row" \
		ratio notes
	while IFS=$'\t' read -r _ case size value unit ratio; do
		printf '  %10s  %-48s %12.5g %-6s %9s %8s  %s\n' "$size" "$(title_of "$section" "$case")" "$value" "$unit" \
			"$(per_row "$section" "$size" "$value" "$unit")" "${ratio:+$(printf '%.3f' "$ratio")}" \
			"$(notes_of "$section" "$case" "$size")"
	done < <(awk -F '\t' -v s="$section" \
		'$1 == s { if (!($3 in place)) place[$3] = ++sizes; print place[$3] "\t" $0 }' "$RESULTS/medians" |
		sort -s -n -k 1,1 | cut -f 2-)
	report_skipped "$section"
}

report_skipped() { # section
	local case size reason
	while IFS=$'\t' read -r _ case size _ reason; do
		printf '  %10s  %-48s left out: %s\n' "$size" "$(title_of "$1" "$case")" "$reason"
	done < <(awk -F '\t' -v s="$1" '$1 == s && $4 == "skipped"' "$RESULTS/notes")
}

report_goals() {
	local issue text value how limit unit met
	local -A sign=([most]='<=' [least]='>=')
	[ -s "$RESULTS/goals" ] || return 0
	printf '\nGOALS\n  %-4s %-92s %10s %12s  %s\n' issue goal reached wanted met
	while IFS=$'\t' read -r issue text value how limit unit met; do
		printf '  %-5s %-92s %10.4g %2s %6.4g %-5s %s\n' "$issue" "$text" "$value" \
			"${sign[$how]}" "$limit" "$unit" "$met"
	done <"$RESULTS/goals"
	printf '  %d of %d met\n' "$(grep -c 'yes$' "$RESULTS/goals")" "$(wc -l <"$RESULTS/goals")"
}

# The medians of a section and its goals, as tables for the documents: a column for each size.
markdown() { # section
	awk -F '\t' -v section="$1" '
		function grouped(n,   text) {
			for (; length(n) > 3; n = substr(n, 1, length(n) - 3)) text = "," substr(n, length(n) - 2) text
			return n text
		}
		function row(name, values, last,   line, i) {
			line = "| " name
			for (i = 1; i <= sizes; i++) line = line " | " values[name, size[i]]
			return line (last == "" ? "" : " | " last) " |"
		}
		function head(last,   line, rule, i) {
			line = "| rows"; rule = "|---"
			for (i = 1; i <= sizes; i++) { line = line " | " grouped(size[i]); rule = rule "|---" }
			print line (last == "" ? "" : " | " last) " |"; print rule (last == "" ? "" : "|---") "|"
		}
		FILENAME ~ /titles$/ { if ($1 == section) { title[$2] = $3; order[++titles] = $3 } next }
		FILENAME ~ /medians$/ {
			if ($1 != section) next
			if (!($3 in place)) { place[$3] = ++sizes; size[sizes] = $3 }
			median[title[$2], $3] = sprintf("%.3f", $4)
			next
		}
		match($2, / at [0-9,]+ rows$/) {
			goal = substr($2, 1, RSTART - 1); at = substr($2, RSTART + 4); gsub(/[^0-9]/, "", at)
			if (!(goal in wanted)) goals[++count] = goal
			wanted[goal] = ($4 == "most" ? "≤ " : "≥ ") $5 " " $6
			reached[goal, at] = sprintf("%.2f", $3)
		}
		END {
			head(""); for (i = 1; i <= titles; i++) print row(order[i], median, "")
			print ""; head("wanted"); for (i = 1; i <= count; i++) print row(goals[i], reached, wanted[goals[i]])
		}' "$RESULTS/titles" "$RESULTS/medians" "$RESULTS/goals"
}

report() {
	local section
	printf '\nMACHINE AND SETTINGS\n'
	sed 's/^/  /' "$RESULTS/machine"
	printf '\nMedians of interleaved rounds. The ratio is to the case of its section that has 1.000; its median over the rounds.\n'
	while read -r section; do report_section "$section"; done < <(cut -f 1 "$RESULTS/medians" | awk '!seen[$0]++')
	report_goals
}

write_json() {
	jq -n --arg options "$*" --rawfile machine "$RESULTS/machine" --rawfile samples "$RESULTS/samples" \
		--rawfile notes "$RESULTS/notes" --rawfile titles "$RESULTS/titles" --rawfile medians "$RESULTS/medians" \
		--rawfile goals "$RESULTS/goals" '
		def table($names): split("\n") | map(select(. != "") | split("\t") | [$names, .] | transpose
			| map({(.[0]): .[1]}) | add);
		def number($name): map(if .[$name] != null and .[$name] != "" then .[$name] |= tonumber else . end);
		{
			options: $options,
			machine: ($machine | split("\n") | map(select(. != "") | split(": ") | {(.[0]): (.[1:] | join(": "))}) | add),
			cases: ($titles | table(["section", "case", "title"])),
			samples: ($samples | table(["section", "case", "size", "round", "value", "unit"])
				| number("round") | number("value")),
			notes: ($notes | table(["section", "case", "size", "name", "value"])),
			medians: ($medians | table(["section", "case", "size", "median", "unit", "ratio"])
				| number("median") | number("ratio")),
			goals: ($goals | table(["issue", "goal", "reached", "bound", "limit", "unit", "met"])
				| number("reached") | number("limit") | map(.met |= (. == "yes")))
		}' >"$WORK/tmp/run.json"
}
