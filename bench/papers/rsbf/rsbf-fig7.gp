figure = 'rsbf-fig7'
what = '1000 M, 60 % distinct, 512 MB'
load 'bench/papers/rsbf/rsbf-errors.inc'
