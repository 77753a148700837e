figure = 'distributed-fig11'
set title 'False positives of filters that grow, by window and burst'
set ylabel '% of the distinct events'
set yrange [0:*]
set style data histograms
set style fill solid 0.6
load 'bench/lib/common.inc'
plot data using 3:xtic(sprintf('w %d, x%d', int($1), int($2))) title 'density', \
     '' using 4 title 'cardinality'
