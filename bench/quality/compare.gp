# FNR over FPR, one curve a kind, one part for each size. Expects `dir` and `stream`
# (gnuplot -e "dir='OUTDIR'; stream='zipf'"); run from the root of the repository.
data = dir.'/compare-'.stream.'.dat'
set output dir.'/compare-'.stream.'.png'
set terminal pngcairo size 1500,950 font ',10'
bits = '1 2 4 8 16'
kinds = 19
set multiplot layout 2,3 title stream.': false negatives over false positives (0 is drawn at the edge)'
set logscale xy
set xrange [1e-5:1]
set yrange [1e-5:1]
set format '%g'
set xlabel 'FPR'
set ylabel 'FNR'
set grid
edge(x) = x < 1e-5 ? 1e-5 : x
# Kinds of the papers are dashed.
dash(i) = i < 12 ? 2 : 1
width(i) = i < 12 ? 1 : 2
set key off
do for [part = 0:4] {
  set title word(bits, part + 1).' bits per key'
  plot for [i = 0:kinds - 1] data index part * kinds + i using (edge($1)):(edge($2)) with linespoints \
       lc i + 1 pt i % 13 + 1 dt dash(i) lw width(i)
}
set title ''
unset logscale
unset xlabel
unset ylabel
unset tics
unset border
unset grid
set key inside top left font ',11'
set xrange [0:1]
set yrange [0:1]
plot for [i = 0:kinds - 1] data index i using (NaN):(NaN) with linespoints lc i + 1 pt i % 13 + 1 \
     dt dash(i) lw width(i) title columnheader(1)
