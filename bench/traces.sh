#!/usr/bin/env bash
# The demo on every stream of a directory, and its results as one table in Markdown, for docs/benchmarks.md.
#
#   bench/traces.sh DIRECTORY [OUTPUT [OPTION...]]
#
# DIRECTORY: files .csv or .csv.gz with a header and a column named key. OUTPUT (build/bench/traces) gets what the demo says
# of each, NAME.txt, and tables.md; what is there is not run again. OPTIONs are the demo's (test/demo.sh --help).

# shellcheck disable=SC2016 # the backquotes are Markdown's
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
directory=${1:?"a directory with streams is needed"}
output=${2:-$here/../build/bench/traces}
shift $(($# < 2 ? $# : 2))
mkdir -p "$output"

# field FILE LINE N: the Nth field of the line that begins with LINE; two blanks or more separate fields
field() { awk -v line="$2" -v n="$3" '{ sub(/^ +/, "") } index($0, line) == 1 { split($0, f, /  +/); print f[n]; exit }' "$1"; }
# share FILE LINE: the percentage in the line
share() { awk -v line="$2" '{ sub(/^ +/, "") } index($0, line) == 1 { for (i = 1; i < NF; i++) if ($(i + 1) == "%") { print $i " %"; exit } }' "$1"; }
# shares FILE KIND: lost / missed of another kind, or -
shares() { awk -v kind="$2" '/^OTHER KINDS/ { on = 1; next } /^$/ { on = 0 } on && $1 == kind { print /refused/ ? "refused" : $2 " % / " $4 " %"; exit }' "$1"; }
# The kind and the size of the filter
filter_of() { sed -nE "s/.*OPTIONS \(kind '([a-z0-9]+)', memory '([^']+)'.*/\2/p" "$1" | head -n 1; }

for file in "$directory"/*.csv "$directory"/*.csv.gz; do
	name=$(basename "${file%.gz}" .csv)
	if [ ! -f "$file" ] || [ -s "$output/$name.txt" ]; then continue; fi
	header=$({ zcat -f "$file" || true; } 2>/dev/null | head -n 1)
	[[ ,$header, == *,key,* ]] || continue
	printf '%s\n' "$name"
	"$here/../test/demo.sh" "$@" --key key "$file" >"$output/$name.part"
	mv "$output/$name.part" "$output/$name.txt"
done

tables() {
	local file name kind
	printf '| stream | events | new | repeats | filter | lost, of the new | missed, of the repeats |\n|---|---|---|---|---|---|---|\n'
	for file in "$output"/*.txt; do
		name=$(basename "$file" .txt)
		kind=$(sed -nE 's/^ *auto, which is ([a-z0-9]+) here.*/\1/p' "$file")
		printf '| `%s` | %s | %s | %s | %s %s | %s | %s |\n' "$name" "$(field "$file" events 2)" "$(share "$file" 'new (exact')" \
			"$(share "$file" 'repeats (exact')" "${kind:-kind as given}" "$(filter_of "$file")" "$(share "$file" 'lost:')" "$(share "$file" 'missed:')"
	done
	printf '\nIn as much memory, lost / missed:\n\n| stream | `sbf` | `bloom` | `lru` |\n|---|---|---|---|\n'
	for file in "$output"/*.txt; do
		printf '| `%s` | %s | %s | %s |\n' "$(basename "$file" .txt)" "$(shares "$file" sbf)" "$(shares "$file" bloom)" "$(shares "$file" lru)"
	done
	printf '\n| stream | the filter | its sessions | UNIQUE index | INSERT | ON CONFLICT | trigger | streamfilter_seen |\n|---|---|---|---|---|---|---|---|\n'
	for file in "$output"/*.txt; do
		printf '| `%s` | %s bytes | %s | %s | %s s | %s | %s | %s |\n' "$(basename "$file" .txt)" "$(field "$file" 'the filter' 2)" \
			"$(field "$file" 'its sessions' 2)" "$(field "$file" 'UNIQUE index' 2)" "$(field "$file" 'INSERT, nothing' 2)" \
			"$(field "$file" 'INSERT ... ON CONFLICT' 2)" "$(field "$file" 'INSERT, trigger' 2)" "$(field "$file" 'INSERT ... WHERE' 2)"
	done
}
tables | tee "$output/tables.md"
