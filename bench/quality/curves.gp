# FNR over bits for each key of a window, one curve a kind, at one FPR: at the window's edge, and over
# all of it. Expects `dir` and `fpr` (gnuplot -e "dir='OUTDIR'; fpr='0.01'"); run from the root of the
# repository.
data = dir.'/curves-'.fpr.'.dat'
set output dir.'/curves-'.fpr.'.svg'
set terminal svg size 1200,560 font 'sans-serif,12' background '#ffffff'
stats data using 1 nooutput
kinds = STATS_blocks
set multiplot title 'False negatives on an endless stream of new keys, FPR '.sprintf('%g', fpr * 100).' %'
set logscale xy
set xrange [4:100]
set yrange [1e-4:1]
set xtics (4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96)
set format y '%g'
set xlabel 'bits for each key of the window'
set grid lc '#dddddd'
seen(x) = x < 1e-4 ? 1e-4 : x
# clq is the first, with one line and with two; the bounds are the last two.
dash(i) = i >= kinds - 2 ? 3 : i == 0 || (i > 1 && i < 10) ? 1 : 2
width(i) = i < 2 ? 3.5 : 1.5
color(i) = i < 2 || i >= kinds - 2 ? 0x000000 : int(word('0xe41a1c 0x377eb8 0x4daf4a 0x984ea3 0xff7f00 0xa65628 0xf781bf 0x999999', (i - 2) % 8 + 1))
set key off
set tmargin 4
set ylabel 'FNR'
set lmargin at screen .06
set rmargin at screen .42
set title 'at the edge of the window'
plot for [i = 0:kinds - 1] data index i using 1:(seen($2)) with lines \
     lc rgb color(i) dt dash(i) lw width(i)
set lmargin at screen .46
set rmargin at screen .8
set title 'over the window'
set format y ''
unset ylabel
set key at screen .995, screen .92 top right samplen 2 font ',11'
plot for [i = 0:kinds - 1] data index i using 1:(seen($3)) with lines \
     lc rgb color(i) dt dash(i) lw width(i) title columnheader(1)
unset multiplot
