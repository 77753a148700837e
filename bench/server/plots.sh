# Plots of the results. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153 # the variables are shared by the benchmark's files

# plot FILE SECTION TITLE X Y FACTOR CASE...: the medians of these cases over the size, one line each. Medians are
# multiplied by FACTOR; "size" in it is the size.
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

# bars FILE SECTION TITLE Y FACTOR CASE...: the medians of these cases, a group of bars for each size.
bars() {
	local file=$1 section=$2 heading=$3 y=$4 factor=$5 data=$WORK/tmp/bars.$2 case size
	shift 5
	{
		printf '"rows"'
		for case in "$@"; do printf ' "%s"' "$(title_of "$section" "$case")"; done
		# shellcheck disable=SC2013 # sizes are words
		for size in $(awk -F '\t' -v s="$section" '$1 == s && !seen[$3]++ { print $3 }' "$RESULTS/medians" | sort -g); do
			printf '\n"%s rows"' "$(commas "$size")"
			for case in "$@"; do
				awk -F '\t' -v s="$section" -v c="$case" -v size="$size" '
					$1 == s && $2 == c && $3 == size { value = $4 * ('"$factor"') } END { printf " %s", value == "" ? "?" : value }' \
					"$RESULTS/medians"
			done
		done
		printf '\n'
	} >"$data"
	[ "$(wc -l <"$data")" -gt 1 ] || return 0
	gnuplot 2>"$WORK/tmp/gnuplot.log" <<-END
		set terminal svg size 1000,480 font 'sans-serif,13' background 'white'
		set output '$WORK/tmp/$file.svg'
		set title '$heading'
		set ylabel '$y'
		set style data histograms
		set style histogram clustered gap 2
		set style fill solid 0.9 noborder
		set boxwidth 0.9 relative
		set yrange [0:*]
		set datafile missing '?'
		set grid ytics
		set key outside bottom center horizontal Left reverse noenhanced
		set linetype 1 linecolor rgb '#bdbdbd'
		set linetype 2 linecolor rgb '#737373'
		set linetype 3 linecolor rgb '#1b7837'
		set linetype 4 linecolor rgb '#7fbf7b'
		set linetype 5 linecolor rgb '#4d4d4d'
		set linetype 6 linecolor rgb '#2166ac'
		set linetype 7 linecolor rgb '#b2182b'
		plot for [i = 2:$(($# + 1))] '$data' using i:xtic(1) title columnheader(i)
	END
}

plots() {
	bars bulk bulk "Loading rows of which 49 % are distinct" "ns per row" "1e9 / size" \
		plain all seen trigger copy copy_trigger unique
	plot rows bulk "Loading rows, half of them repeats" "rows" "ns per row" "1e9 / size" \
		plain all seen trigger unique exists hash copy copy_trigger
	plot sizes core "Per key, pages of usual size" "memory of the filter" "ns per key" 1 \
		limit/chained/small limit/prefetched/small "${PLOTTED_KINDS[@]/%//chained/small}"
	plot sessions sessions "Sessions on one filter, $BATCH keys a transaction" "sessions" "transactions per second" 1 \
		seen insert trigger
}
