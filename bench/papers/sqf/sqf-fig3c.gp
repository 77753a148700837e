figure = 'sqf-fig3c'
set title "SQF by reduced remainder: 1 billion records, 15 % distinct, 64 MB, r = 7"
set xlabel "r'"
set ylabel '%'
set yrange [-2:*]
load 'bench/lib/common.inc'
plot data using 1:2 with linespoints title 'FPR', '' using 1:3 with linespoints title 'FNR'
