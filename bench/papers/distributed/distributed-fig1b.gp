figure = 'distributed-fig1b'
set title 'Slices needed for a bound on false positives (Definition 3), k = 4, FPR 2 %'
set xlabel 'failed slices'
set ylabel 'S_f'
load 'bench/lib/common.inc'
bounds = '5 10 15'
plot for [i=1:3] data using 1:1+i with linespoints title 'horizontal, '.word(bounds, i).' %', \
     for [i=1:3] data using 1:4+i with linespoints title 'vertical, '.word(bounds, i).' %'
