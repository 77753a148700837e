figure = 'rsbf-fig5'
what = '1000 M, 60 % distinct, 128 MB'
load 'bench/papers/rsbf/rsbf-errors.inc'
