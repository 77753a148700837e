#!/usr/bin/env bash
# The demo's evidence can come out badly: a filter that is far too small must look it, and one of the right size must not.
# Run by test/all.sh.
#
#   test/demo_check.sh
#
# A stream of 30,000 events in which every key comes back twice, 10,000 events later.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
events=$(mktemp --suffix .csv)
trap 'rm -f "$events"' EXIT
awk 'BEGIN { print "key"; for (i = 0; i < 30000; i++) print "k" i % 10000 }' >"$events"

# percent OUTPUT WORD: the share in the line that begins so, as a whole number
percent() { awk -v word="$2" '$1 == word ":" { for (i = 1; i < NF; i++) if ($(i + 1) == "%") { print int($i); exit } }' <<<"$1"; }

check() { # what, number, condition
	test "$2" "$3" "$4" || { printf 'failed: %s is %s %%, should be %s %s\n' "$1" "$2" "$3" "$4" && exit 1; }
	printf '%s: %s %%\n' "$1" "$2"
}

small=$("$here/demo.sh" --memory 1kB --kind lru "$events")
check "missed by 1 kB of recent keys" "$(percent "$small" missed)" -gt 90
large=$("$here/demo.sh" --memory 32kB "$events")
for line in 'at most fpr' 'told auto' 'rows lost, rows twice, after settling' docs/pictures/row.svg docs/pictures/costs.svg 'WHAT TO TYPE NEXT'; do
	grep -q -- "$line" <<<"$large" || { printf 'failed: the demo does not print: %s\n' "$line" && exit 1; }
done
check "missed in 32 kB" "$(percent "$large" missed)" -lt 10
check "lost in 32 kB" "$(percent "$large" lost)" -le 1
if "$here/demo.sh" --kind none "$events" >/dev/null 2>&1; then printf 'failed: an unknown kind was taken\n' && exit 1; fi
