figure = 'distributed-fig10e'
set title 'Filters by cardinality, window of 500 slots'
load 'bench/plots/distributed-filters.inc'
