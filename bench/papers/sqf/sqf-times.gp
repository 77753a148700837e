figure = 'sqf-times'
set title 'Time per element, as a multiple of that of SQF'
set xlabel 'MB'
set yrange [0:*]
set style data histograms
set style fill solid 0.6
load 'bench/lib/common.inc'
plot data using 2:xtic(1) title 'SBF', '' using 3 title 'RSBF', '' using 4 title 'RLBSBF', \
     '' using 5 title 'DSQF', '' using 6 title 'SBF, printed', '' using 7 title 'RSBF, printed'
