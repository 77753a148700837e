figure = 'ibf-fig11'
set title 'False negatives, equal frequencies'
set ylabel '% of the elements of this importance'
load 'bench/papers/ibf/ibf-by-importance.inc'
