#!/usr/bin/env bash
# A checker that cannot fail measures nothing: with each of the defects that can be planted it must find a difference.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failed=0
for defect in disabled key row savepoint; do
	if output=$("$here/run.sh" 60 1 "$defect" 2>&1); then
		printf 'not ok defect %s is not found\n' "$defect"
		failed=1
	elif grep -q '^model: DIFFERENCE' <<<"$output"; then
		printf 'ok defect %s: %s\n' "$defect" "$(sed -n 's/^model: DIFFERENCE //p' <<<"$output")"
	else
		printf 'not ok defect %s\n%s\n' "$defect" "$output"
		failed=1
	fi
	directory=$(sed -n 's/^model: seed .* in //p' <<<"$output")
	case $directory in /tmp/sf.*) rm -rf "$directory" ;; esac
done
exit "$failed"
