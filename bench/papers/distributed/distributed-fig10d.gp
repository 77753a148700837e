figure = 'distributed-fig10d'
set title 'Filters by cardinality, window of 100 slots'
load 'bench/papers/distributed/distributed-filters.inc'
