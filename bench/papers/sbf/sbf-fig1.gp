figure = 'sbf-fig1'
load 'bench/lib/common.inc'
set terminal pngcairo size 1100,750
set datafile missing 'nan'
set bmargin
set multiplot layout 1,2 title "Deng, Rafiei 2006, figure 1: false negatives by Eq. 16 over K; points: measured, with a whole P"
set xlabel 'K'
set ylabel 'FNR'
set yrange [0:1]
set key inside top left font ',8'
do for [part = 0:1] {
  plot for [i = 6 * part:6 * part + 5] data index i using 1:2 with lines lc i % 6 + 1 title columnheader(1), \
       for [i = 6 * part:6 * part + 5] data index i using 1:6:7 skip 1 with yerrorbars lc i % 6 + 1 pt 7 ps 0.6 notitle
}
