figure = 'distributed-fig1a'
set title 'False positives while slices are lost that count as set, k = 4, FPR 2 %, 40 slices'
set xlabel '% of the slices lost'
set ylabel '% of the new events'
load 'bench/lib/common.inc'
plot for [i=0:3] data index i using 1:2 with points pt i+4 lc i+1 title columnheader(1), \
     for [i=0:3] data index i using 1:3 with lines lc i+1 notitle
