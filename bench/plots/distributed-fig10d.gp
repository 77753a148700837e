figure = 'distributed-fig10d'
set title 'Filters by cardinality, window of 100 slots'
load 'bench/plots/distributed-filters.inc'
