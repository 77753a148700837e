figure = 'distributed-fig7a'
set title 'False positives of sliced Bloom filters, synthetic streams'
set ylabel '% of the distinct events'
set yrange [0:*]
load 'bench/papers/distributed/distributed-slicing.inc'
