figure = 'rsbf-fig3'
what = '1000 M, 15 % distinct, 256 MB'
load 'bench/plots/rsbf-errors.inc'
