figure = 'distributed-fig8a'
set title 'Fairness of the loads of slices, synthetic streams'
set ylabel 'fairness'
set yrange [0:*]
load 'bench/papers/distributed/distributed-slicing.inc'
