# Both errors along the stream, from error_curve(). `data`, `picture` (empty: into the terminal) and `what` are given.
set datafile missing "NaN"
if (picture eq "") {
	set terminal dumb size 100, 18
	set nogrid
} else {
	set terminal pngcairo size 900, 420
	set output picture
	set grid
}
set title what noenhanced
set xlabel "events"
set ylabel "percent"
set yrange [0:*]
set key outside bottom center horizontal
plot data using 1:2 with lines title "lost, of the new events", \
     data using 1:3 with lines title "missed, of the repeats"
