# Prints core/format/parameters.hpp, or core/kind/kind_list.hpp, with kind toy: its number, or its two lines.
/^enum class Kind / { in_numbers = 1 }
in_numbers && /^  [a-z0-9_]+ = [0-9]+,$/ { number = $3 + 0 }
in_numbers && /^};/ { in_numbers = 0; print "  toy = " number + 1 ","; ++added }
/^extern const FilterOps / { in_rows = 1 }
in_rows && /^$/ { in_rows = 0; print "extern const FilterOps toy_ops;  // toy_kind.cpp"; ++added }
/ kKinds\[\] = \{$/ { in_table = 1 }
in_table && /^};/ { in_table = 0; print "    &toy_ops,"; ++added }
{ print }
END { if (added != (FILENAME ~ /parameters/ ? 1 : 2)) { print FILENAME ": not as it was" >"/dev/stderr"; exit 1 } }
