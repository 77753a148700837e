figure = 'distributed-fig10c'
set title 'Filters by density, window of 1000 slots'
load 'bench/papers/distributed/distributed-filters.inc'
