# The fields of a CSV's first record, one per line and without spaces around them; a line break in a name becomes a
# space. Prints nothing when a quote is never closed.
function trimmed(text) {
	sub(/^[ \t]+/, "", text)
	sub(/[ \t]+$/, "", text)
	return text
}

NR == 1 && substr($0, 1, 3) == "\357\273\277" { $0 = substr($0, 4) } # a byte order mark

{
	sub(/\r$/, "")
	for (i = 1; i <= length($0); i++) {
		c = substr($0, i, 1)
		if (c == "\"" && quoted && substr($0, i + 1, 1) == "\"") {
			field = field c
			i++
		} else if (c == "\"") {
			quoted = !quoted
		} else if (c == delimiter && !quoted) {
			fields = fields trimmed(field) "\n"
			field = ""
		} else {
			field = field c
		}
	}
	if (!quoted) {
		printf "%s%s\n", fields, trimmed(field)
		exit
	}
	field = field " "
}
