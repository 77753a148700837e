figure = 'ibf-fig14'
set title 'False negatives, frequency inverse to importance'
set ylabel '% of the elements of this importance'
load 'bench/papers/ibf/ibf-by-importance.inc'
