figure = 'distributed-grow'
set title 'False positives of full Bloom filters asked together'
set xlabel 'filters'
set ylabel '%'
load 'bench/lib/common.inc'
plot data using 1:2 with points title 'density', '' using 1:3 with points title 'cardinality', \
     '' using 1:4 with lines title '1 - (1 - P)^j'
