figure = 'distributed-fig10f'
set title 'Filters by cardinality, window of 1000 slots'
load 'bench/papers/distributed/distributed-filters.inc'
