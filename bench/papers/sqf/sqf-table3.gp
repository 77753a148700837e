figure = 'sqf-table3'
set title 'Zipfian streams, 1 billion records, 15 % distinct (as computed here)'
set xlabel 'MB'
set ylabel '%'
set logscale x 2
load 'bench/lib/common.inc'
names = 'SBF RSBF SQF'
plot for [i=0:2] data every ::0::4 using 2:3+i with linespoints lc i+1 title word(names, i+1).' FPR', \
     for [i=0:2] '' every ::0::4 using 2:6+i with linespoints lc i+1 dt 2 title word(names, i+1).' FNR'
