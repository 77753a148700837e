figure = 'ibf-fig17'
set title 'False negatives, frequency proportional to importance'
set ylabel '% of the elements of this importance'
load 'bench/papers/ibf/ibf-by-importance.inc'
