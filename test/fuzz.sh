#!/usr/bin/env bash
# Fuzzes what reads bytes from outside, under ASan and UBSan.
#
#   test/fuzz.sh MINUTES [TARGET…]     each target for so many minutes (0.5 is half of one); all of them when none is named
#
# Ends with one line per target: how many inputs were run, or the finding. An input that breaks a target is kept in
# test/fuzz/corpus/TARGET, which the unit tests replay. What was learnt on the way stays in build/fuzz/corpus, so that a
# later run goes on from there. With FUZZ_SEED a first run is repeatable: the same inputs in the same order. Two targets run
# at a time. Needs clang with libFuzzer (Debian: clang, libclang-rt-dev); without, it says so and ends.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets() { sed -n 's/^void \([a-z]*\)(const std::uint8_t\* data, std::size_t size);/\1/p' test/fuzz/target.hpp; }

# fuzz TARGET SECONDS
fuzz() {
	local target=$1 seconds=$2 log=build/fuzz/$1.log status=0 kept=test/fuzz/corpus/$1
	mkdir -p "build/fuzz/corpus/$target" "$kept"
	"build/fuzz/$target" -seed="${FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=20 -report_slow_units=20 -rss_limit_mb=1024 -max_len=8192 -print_final_stats=1 \
		-artifact_prefix="$kept/" "build/fuzz/corpus/$target" "$kept" "build/fuzz/seeds/$target" >"$log" 2>&1 || status=$?
	rmdir --ignore-fail-on-non-empty "$kept"
	if [ "$status" -eq 0 ]; then
		awk -v target="$target" '/^stat::number_of_executed_units/ { inputs = $2 }
			/ cov: / { for (i = 1; i < NF; ++i) if ($i == "cov:") edges = $(i + 1) }
			END { printf "ok %s: %d inputs, %d edges\n", target, inputs, edges }' "$log"
	else
		echo "not ok $target: $(grep -m 1 -E 'ERROR: |not true|runtime error:' "$log" || tail -n 1 "$log")"
		sed -n '/ERROR: \|not true\|runtime error:/,$p' "$log" | head -n 60
	fi
	return "$status"
}

# A linker that root runs replaces /dev/null by a file, if told to write there.
has_libfuzzer() {
	local compiler out status=0
	compiler=$(make -s -f test/fuzz/Makefile compiler)
	[ -n "$compiler" ] || return 1
	out=$(mktemp)
	"$compiler" -x c++ -fsanitize=fuzzer,address,undefined -o "$out" - 2>/dev/null <<-END || status=1
		extern "C" int LLVMFuzzerTestOneInput(const unsigned char *, unsigned long) { return 0; }
	END
	rm -f "$out"
	return "$status"
}

main() {
	local failed=0 seconds report
	[ $# -gt 0 ] || {
		sed -n '2,9s/^# \{0,1\}//p' "$0"
		exit 2
	}
	seconds=$(awk -v minutes="$1" 'BEGIN { printf "%d", minutes * 60 }')
	shift
	has_libfuzzer || {
		echo "skip: there is no clang with libFuzzer"
		exit 0
	}
	make -s -j2 -f test/fuzz/Makefile
	# shellcheck disable=SC2046
	[ $# -gt 0 ] || set -- $(targets)
	while [ $# -gt 0 ]; do
		fuzz "$1" "$seconds" &
		if [ $# -gt 1 ]; then
			report=$(fuzz "$2" "$seconds") || failed=1
		fi
		wait $! || failed=1
		[ $# -lt 2 ] || echo "$report"
		shift $(($# > 1 ? 2 : 1))
	done
	exit "$failed"
}

main "$@"
