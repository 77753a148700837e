figure = 'ibf-fig9'
set title 'equal frequencies'
load 'bench/plots/ibf-distribution.inc'
