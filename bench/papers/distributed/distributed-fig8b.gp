figure = 'distributed-fig8b'
set title 'Fairness of the loads of slices, traces'
set ylabel 'fairness'
set yrange [0:*]
load 'bench/papers/distributed/distributed-slicing.inc'
