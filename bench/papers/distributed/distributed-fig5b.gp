figure = 'distributed-fig5b'
set title 'Fairness of the loads of slices, web log'
set ylabel 'fairness'
set yrange [0:*]
load 'bench/papers/distributed/distributed-slicing.inc'
