figure = 'distributed-fig9d'
set title "False negatives by the equal timers k' that a duplicate needs, k = 8"
set xlabel "k'"
set ylabel '%'
load 'bench/lib/common.inc'
plot data using 1:2 with linespoints title 'horizontal', '' using 1:3 with linespoints title 'vertical'
