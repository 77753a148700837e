figure = 'ibf-table2'
set title 'Weighted rates on the nine synthetic streams'
set xlabel 'weighted false positives, %'
set ylabel 'weighted false negatives, %'
load 'bench/lib/common.inc'
names = "BF SBF IBF-2C IBF-MC IBF-H"
plot for [i=0:4] data using ($3 == i ? $6 : NaN):7 with points ps 1.5 title word(names, i+1)
