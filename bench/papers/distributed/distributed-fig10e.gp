figure = 'distributed-fig10e'
set title 'Filters by cardinality, window of 500 slots'
load 'bench/papers/distributed/distributed-filters.inc'
