figure = 'sbf-fig2'
load 'bench/lib/common.inc'
set terminal pngcairo size 1100,750
set datafile missing 'nan'
set title "Deng, Rafiei 2006, figure 2: FNR with Max 3 less FNR with Max 1 in as many bits, by Eq. 16; points: measured, with a whole P"
set logscale x
set xlabel 'gap'
set ylabel 'difference of the FNR'
plot for [i = 0:7] data index i using 1:2 with lines lc i + 1 title columnheader(1), \
     for [i = 0:7] data index i using 1:4:5 skip 1 with yerrorbars lc i + 1 pt 7 ps 0.6 notitle
