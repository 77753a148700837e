# Three plots of what was measured. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153 # the variables are shared by the benchmark's files

# plot FILE SECTION TITLE X Y FACTOR CASE...: the medians of these cases against the size, one line each. FACTOR is what a
# median is multiplied with; "size" in it is the size.
plot() {
	local file=$1 section=$2 heading=$3 x=$4 y=$5 factor=$6 case lines='' data points=0
	shift 6
	for case in "$@"; do
		data=$WORK/tmp/plot.$section.${case//\//_}
		awk -F '\t' -v s="$section" -v c="$case" '
			function bytes(size) {
				return size + 0 == size ? size : size * (size ~ /kB$/ ? 1024 : size ~ /MB$/ ? 1048576 : 1073741824)
			}
			$1 == s && $2 == c { size = bytes($3); print size, $4 * ('"$factor"'), $3 }' "$RESULTS/medians" | sort -g >"$data"
		[ -s "$data" ] || continue
		points=$((points + 1))
		lines+="${lines:+, }'$data' using 1:2:xtic(3) with linespoints linewidth 2 pointtype $points title '$(title_of "$section" "$case" |
			tr -s ' ')'"
	done
	[ -n "$lines" ] || return 0
	gnuplot 2>"$WORK/tmp/gnuplot.log" <<-END
		set terminal png noenhanced size 1200,600
		set output '$WORK/tmp/$file.png'
		set title '$heading'
		set xlabel '$x'
		set ylabel '$y'
		set logscale x
		set yrange [0:*]
		set grid
		set key outside right top Left reverse
		unset mxtics
		set autoscale xfix
		plot $lines
	END
}

plots() {
	plot rows bulk "Loading rows, half of them repeats" "rows" "ns per row" "1e9 / size" \
		plain all seen trigger unique exists hash copy copy_trigger
	plot sizes core "Per key, pages of usual size" "memory of the filter" "ns per key" 1 \
		limit/chained/small limit/prefetched/small "${PLOTTED_KINDS[@]/%//chained/small}"
	plot sessions sessions "Sessions on one filter, $BATCH keys a transaction" "sessions" "transactions per second" 1 \
		seen insert trigger
}
