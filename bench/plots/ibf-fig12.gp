figure = 'ibf-fig12'
set title 'frequency inverse to importance'
load 'bench/plots/ibf-distribution.inc'
