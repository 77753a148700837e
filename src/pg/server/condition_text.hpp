// Conditions that users write as text, to become part of a query.
#pragma once

namespace streamfilter::pg {

// Raises 42601 unless the text is one expression, so that it keeps its meaning between parentheses.
// The message names `argument` and `function`.
void check_condition(const char* text, const char* argument, const char* function);

}  // namespace streamfilter::pg
