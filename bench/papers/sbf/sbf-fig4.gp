figure = 'sbf-fig4'
load 'bench/lib/common.inc'
set terminal pngcairo size 1100,750
set datafile missing 'nan'
stats data using 1 nooutput
set bmargin
set multiplot layout 2,2 title "Deng, Rafiei 2006, figure 4: errors over space, in %; lines: measured, points: printed"
set logscale x
set xlabel 'bits'
set yrange [0:100]
set key inside top right font ',8'
do for [i = 0:STATS_blocks - 1] {
  set title word("100K 10M 695M trace", i + 1).' rows'
  plot data index i using 1:2 skip 1 with lines lc 1 title 'SBF, FNR', \
       data index i using 1:3 skip 1 with lines lc 2 title 'FPBuffering, FNR', \
       data index i using 1:4 skip 1 with lines lc 3 title 'Buffering, FNR', \
       data index i using 1:5 skip 1 with lines lc 4 title 'SBF and FPBuffering, FPR', \
       data index i using 1:6 skip 1 with lines lc 5 title 'Bloom filter, FPR', \
       data index i using 1:7 skip 1 with lines lc 1 dt 2 title 'SBF, FNR by Eq. 15', \
       for [c = 1:(i < 3 ? 5 : 0)] data index i using 1:(column(word("8 9 10 11 12", c) + 0)) skip 1 with points lc c pt 7 notitle
}
