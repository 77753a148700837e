figure = 'rsbf-fig8'
what = '695 M, 15 % distinct, 512 MB'
load 'bench/papers/rsbf/rsbf-errors.inc'
