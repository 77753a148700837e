figure = 'rsbf-fig6'
what = '1000 M, 60 % distinct, 256 MB'
load 'bench/papers/rsbf/rsbf-errors.inc'
