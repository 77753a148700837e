figure = 'ibf-fig15'
set title 'frequency proportional to importance'
load 'bench/plots/ibf-distribution.inc'
