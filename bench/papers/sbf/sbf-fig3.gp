figure = 'sbf-fig3'
load 'bench/lib/common.inc'
set terminal pngcairo size 1100,750
set datafile missing 'nan'
set title "Deng, Rafiei 2006, figure 3: zeros along the crawl; dashed: on new keys by Eq. 1, points: measured"
set logscale x
set xlabel 'elements'
set ylabel 'share of zeros'
stats data using 1 nooutput
plot for [i = 0:STATS_blocks - 1] data index i using 1:2 with lines lc i + 1 title columnheader(1), \
     for [i = 0:STATS_blocks - 1] data index i using 1:4 with lines lc i + 1 dt 2 title '', \
     for [i = 0:STATS_blocks - 1] data index i using 1:3 skip 1 with points lc i + 1 pt 7 ps 0.5 notitle
