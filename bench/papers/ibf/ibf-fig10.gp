figure = 'ibf-fig10'
set title 'False positives, equal frequencies'
set ylabel '% of the elements of this importance'
load 'bench/papers/ibf/ibf-by-importance.inc'
