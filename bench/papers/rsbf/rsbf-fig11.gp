figure = 'rsbf-fig11'
load 'bench/lib/common.inc'
set terminal pngcairo size 1100,750
set datafile missing 'nan'
set title "Bera et al. 2012, figure 11: load along the stream, 1000 M, 15 % distinct; points: measured, lines: model"
set xlabel 'million elements'
set ylabel 'bits set, %'
set key outside right
plot for [i = 0:11] data index i using 1:3 skip 1 with lines lc i + 1 notitle, \
     for [i = 0:11] data index i using 1:2 with points lc i + 1 pt 7 ps 0.5 title columnheader(1)
