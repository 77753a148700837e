figure = 'distributed-fig5c'
set title 'The most loaded slice, web log'
set ylabel '% of the look-ups'
set logscale y
load 'bench/papers/distributed/distributed-slicing.inc'
