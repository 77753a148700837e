figure = 'ibf-fig15'
set title 'frequency proportional to importance'
load 'bench/papers/ibf/ibf-distribution.inc'
