figure = 'ibf-fig13'
set title 'False positives, frequency inverse to importance'
set ylabel '% of the elements of this importance'
load 'bench/papers/ibf/ibf-by-importance.inc'
