figure = 'ibf-fig9'
set title 'equal frequencies'
load 'bench/papers/ibf/ibf-distribution.inc'
