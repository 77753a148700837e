figure = 'rsbf-fig9'
what = '695 M, 60 % distinct, 512 MB'
load 'bench/papers/rsbf/rsbf-errors.inc'
