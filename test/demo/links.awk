# apt's Packages files → CSV: every package that a package depends on or recommends, in file order, as a crawler that
# follows these links would meet them.
BEGIN { print "package,needed_by" }

/^Package: / { needed_by = $2 }

/^(Depends|Recommends): / {
	sub(/^[A-Za-z]+: */, "")
	count = split($0, names, /[,|]/)
	for (i = 1; i <= count; i++) {
		sub(/^ +/, "", names[i])
		sub(/[ :(].*/, "", names[i]) # no version, no architecture
		if (names[i] != "") print names[i] "," needed_by
	}
}
