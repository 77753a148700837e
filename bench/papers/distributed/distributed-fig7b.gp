figure = 'distributed-fig7b'
set title 'False positives of sliced Bloom filters, traces'
set ylabel '% of the distinct events'
set yrange [0:*]
load 'bench/papers/distributed/distributed-slicing.inc'
