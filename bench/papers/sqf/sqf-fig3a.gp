figure = 'sqf-fig3a'
set title 'SQF by buckets per row: 1 billion records, 15 % distinct, r = 2'
set xlabel 'k'
set ylabel '%'
set yrange [-2:*]
load 'bench/lib/common.inc'
plot data using 1:2 with linespoints title 'FPR', '' using 1:3 with linespoints title 'FNR', \
     '' using 1:4 with linespoints dt 2 title 'FPR of hashes', \
     '' using 1:5 with linespoints dt 2 title 'FNR of hashes'
