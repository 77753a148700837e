figure = 'sbf-fig6'
load 'bench/lib/common.inc'
set terminal pngcairo size 1100,750
set datafile missing 'nan'
set bmargin
set multiplot layout 2,2 title "Deng, Rafiei 2006, figure 6: synthetic streams, in %"
set logscale x
set xlabel 'bits'
set yrange [0:100]
set key inside bottom left font ',8'
names = "'b-model 1' 'b-model 2' 'b-model 3' Poisson"
do for [i = 0:3] {
  set title word(names, i + 1)
  plot data index i using 1:2 skip 1 with linespoints lc 1 title 'SBF, FNR', \
       data index i using 1:3 skip 1 with linespoints lc 2 title 'FPBuffering, FNR', \
       data index i using 1:4 skip 1 with lines lc 4 title 'FPR of both', \
       data index i using 1:5 skip 1 with lines lc 1 dt 2 title 'SBF, FNR by Eq. 15'
}
