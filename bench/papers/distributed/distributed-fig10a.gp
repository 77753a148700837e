figure = 'distributed-fig10a'
set title 'Filters by density, window of 100 slots'
load 'bench/papers/distributed/distributed-filters.inc'
