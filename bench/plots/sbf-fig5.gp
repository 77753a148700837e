load 'bench/plots/style.inc'
data = dir.'/sbf-fig5.dat'
set output dir.'/sbf-fig5.png'
set title "sbf.txt, figure 5: how much less SBF misses than FPBuffering at the same FPR"
set style data histograms
set style fill solid 0.6
set xlabel 'bits'
set ylabel 'points of FNR'
plot for [i = 1:4] data using i + 1:xtic(1) title 'FPS '.word("0.5 1 10 20", i).' %'
