figure = 'rsbf-fig2'
what = '1000 M, 15 % distinct, 128 MB'
load 'bench/papers/rsbf/rsbf-errors.inc'
