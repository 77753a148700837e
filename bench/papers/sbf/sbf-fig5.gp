figure = 'sbf-fig5'
load 'bench/lib/common.inc'
set terminal pngcairo size 1100,750
set datafile missing 'nan'
set title "Deng, Rafiei 2006, figure 5: how much less SBF misses than FPBuffering at the same FPR"
set style data histograms
set style fill solid 0.6
set xlabel 'bits'
set ylabel 'points of FNR'
plot for [i = 1:4] data using i + 1:xtic(1) title 'FPS '.word("0.5 1 10 20", i).' %'
