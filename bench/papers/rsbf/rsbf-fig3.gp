figure = 'rsbf-fig3'
what = '1000 M, 15 % distinct, 256 MB'
load 'bench/papers/rsbf/rsbf-errors.inc'
