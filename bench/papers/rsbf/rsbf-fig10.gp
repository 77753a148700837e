figure = 'rsbf-fig10'
what = '695 M, 90 % distinct, 512 MB'
load 'bench/papers/rsbf/rsbf-errors.inc'
