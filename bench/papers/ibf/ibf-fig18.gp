figure = 'ibf-fig18'
set title 'Share of zeros on distinct keys; dashed: limit of the Markov chain'
set xlabel 'elements'
set ylabel 'share of zeros'
load 'bench/lib/common.inc'
plot data using 1:2 with lines lc 1 title 'BF', '' using 1:3 with lines lc 2 title 'SBF', \
     '' using 1:4 with lines lc 3 title 'IBF-2C', '' using 1:5 with lines lc 4 title 'IBF-MC', \
     '' using 1:6 with lines lc 5 title 'IBF-H', \
     for [i=7:10] '' using 1:i with lines lc i-5 dt 2 notitle
