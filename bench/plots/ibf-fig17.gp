figure = 'ibf-fig17'
set title 'False negatives, frequency proportional to importance'
set ylabel '% of the elements of this importance'
load 'bench/plots/ibf-by-importance.inc'
