figure = 'distributed-fig8c'
set title 'The most loaded slice, synthetic streams'
set ylabel '% of the look-ups'
set logscale y
load 'bench/papers/distributed/distributed-slicing.inc'
