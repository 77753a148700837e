figure = 'sqf-fig3b'
set title 'SQF by remainder bits: 1 billion records, 15 % distinct'
set xlabel 'r'
set ylabel '%'
set yrange [-2:*]
load 'bench/lib/common.inc'
plot data using 1:2 with linespoints title 'FPR, room for all signatures', \
     '' using 1:3 with linespoints title 'FNR, room for all signatures', \
     '' using 1:4 with linespoints dt 2 title 'FPR, k = 4', \
     '' using 1:5 with linespoints dt 2 title 'FNR, k = 4'
