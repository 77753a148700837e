figure = 'distributed-fig5a'
set title 'False positives of sliced Bloom filters, web log'
set ylabel '% of the distinct events'
set yrange [0:*]
load 'bench/papers/distributed/distributed-slicing.inc'
