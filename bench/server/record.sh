# Results and what follows from them: tab-separated files in $RESULTS. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2034 # the variables are shared by the benchmark's files

RESULTS='' # samples, notes, titles, goals
FAILURES=0

record() { # section case size round value unit: one measurement. size: rows, sessions, or what the section varies
	local IFS=$'\t'
	printf '%s\n' "$*" >>"$RESULTS/samples"
}

note() { # section case size name value: a count that belongs to a case
	local IFS=$'\t'
	printf '%s\n' "$*" >>"$RESULTS/notes"
}

title() { # section case title: tables have their cases in the order in which these were called
	local IFS=$'\t'
	grep -qF "$1"$'\t'"$2"$'\t' "$RESULTS/titles" 2>/dev/null || printf '%s\n' "$*" >>"$RESULTS/titles"
}

title_of() { # section case
	awk -F '\t' -v s="$1" -v c="$2" '$1 == s && $2 == c { print $3 }' "$RESULTS/titles"
}

# The median of the numbers in the input; nothing if there are none.
median() {
	sort -g | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

median_of() { # section case size
	awk -F '\t' -v s="$1" -v c="$2" -v n="$3" '$1 == s && $2 == c && $3 == n { print $5 }' "$RESULTS/samples" | median
}

# per_round ratio|difference SECTION SIZE CASE[+CASE...] CASE[+CASE...] [FACTOR]: of the sums of both sides, in each
# round; their median, times FACTOR; nothing if one side was not measured. What disturbs the machine for longer than a round disturbs both sides alike.
per_round() {
	awk -F '\t' -v how="$1" -v s="$2" -v n="$3" -v left="$4" -v right="$5" -v factor="$(awk "BEGIN { print ${6:-1} }")" '
		function sum(cases, count, round,   i, total) {
			for (i = 1; i <= count; i++) {
				if (!((cases[i], round) in value)) return -1
				total += value[cases[i], round]
			}
			return total
		}
		$1 == s && $3 == n { value[$2, $4] = $5; rounds[$4] }
		END {
			l = split(left, lefts, "+"); r = split(right, rights, "+")
			for (round in rounds) {
				a = sum(lefts, l, round); b = sum(rights, r, round)
				if (a < 0 || b <= 0) continue
				print factor * (how == "ratio" ? a / b : a - b)
			}
		}' "$RESULTS/samples" | median
}

# goal ISSUE TEXT VALUE most|least LIMIT UNIT: a goal of an issue, and the value reached; nothing without a VALUE.
goal() {
	[ -n "$3" ] || return 0
	local met
	met=$(awk -v value="$3" -v how="$4" -v limit="$5" \
		'BEGIN { print (how == "most" ? value <= limit : value >= limit) ? "yes" : "no" }')
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@" "$met" >>"$RESULTS/goals"
}

# measure SECTION CASE SIZE ROUND COMMAND...: runs the command, which prints its results in lines "sample VALUE UNIT"
# and "note NAME VALUE". A command that fails is shown, counted and left out.
measure() {
	local section=$1 case=$2 size=$3 round=$4 name value unit
	shift 4
	job "  $section $round: $(title_of "$section" "$case"), $size" "$@"
	if [ "$JOB_STATUS" -ne 0 ]; then
		printf '  failed\n'
		tail -n 20 "$WORK/job.log" >&2
		FAILURES=$((FAILURES + 1))
		return
	fi
	while read -r name value unit; do
		case $name in
		sample)
			record "$section" "$case" "$size" "$round" "$value" "$unit"
			printf '  %12.6g %s' "$value" "$unit"
			;;
		note) [ "$round" -gt 1 ] || note "$section" "$case" "$size" "$value" "$unit" ;;
		esac
	done < <(grep -E '^(sample|note) ' "$WORK/job.log")
	printf '\n'
}
