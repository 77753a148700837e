figure = 'ibf-fig16'
set title 'False positives, frequency proportional to importance'
set ylabel '% of the elements of this importance'
load 'bench/papers/ibf/ibf-by-importance.inc'
