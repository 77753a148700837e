figure = 'rsbf-fig4'
what = '1000 M, 15 % distinct, 512 MB'
load 'bench/papers/rsbf/rsbf-errors.inc'
