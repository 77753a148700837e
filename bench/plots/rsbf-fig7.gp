figure = 'rsbf-fig7'
what = '1000 M, 60 % distinct, 512 MB'
load 'bench/plots/rsbf-errors.inc'
