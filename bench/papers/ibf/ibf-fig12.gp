figure = 'ibf-fig12'
set title 'frequency inverse to importance'
load 'bench/papers/ibf/ibf-distribution.inc'
