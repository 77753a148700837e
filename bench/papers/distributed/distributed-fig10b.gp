figure = 'distributed-fig10b'
set title 'Filters by density, window of 500 slots'
load 'bench/papers/distributed/distributed-filters.inc'
