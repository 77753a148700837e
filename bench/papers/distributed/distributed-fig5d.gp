figure = 'distributed-fig5d'
set title 'A duplicate needs x bits that can be reached, k = 8, 8 of 40 slices lost'
set xlabel 'x'
set ylabel '%'
load 'bench/lib/common.inc'
plot data using 1:2 with linespoints title 'at least x set (hybrid): FPR', \
     data using 1:4 with linespoints title 'all set, at least x (votes): FPR', \
     data using 1:5 with linespoints title 'FNR of both'
