figure = 'distributed-fig7c'
set title 'Slices that a look-up asks, vertical, k = 4'
set logscale x
set xlabel 'slices'
set ylabel 'slices asked'
set yrange [0:*]
load 'bench/lib/common.inc'
shares = '80 50 20'
plot data using 1:2 with linespoints title 'all at once', \
     for [i=1:3] data using 1:2+i with linespoints title 'pipelined, '.word(shares, i).' % distinct'
