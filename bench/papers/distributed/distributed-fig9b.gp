figure = 'distributed-fig9b'
set title 'Keys whose timers all run, by equal timers: vertical, 40 slices'
set xlabel 'equal timers'
set ylabel '%'
set yrange [0:105]
load 'bench/lib/common.inc'
plot data using 1:2 with linespoints title 'true duplicates of these', \
     '' using 1:3 with linespoints title 'share of all'
