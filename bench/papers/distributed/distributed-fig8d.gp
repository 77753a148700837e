figure = 'distributed-fig8d'
set title 'The most loaded slice, traces'
set ylabel '% of the look-ups'
set logscale y
load 'bench/papers/distributed/distributed-slicing.inc'
