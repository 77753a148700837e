// Conditions that users write as text, and that become part of a query.
#pragma once

namespace streamfilter::pg {

// Raises 42601 unless the text is one expression, so that between parentheses it is what it is by
// itself. `argument` and `function` name it in the message.
void check_condition(const char* text, const char* argument, const char* function);

}  // namespace streamfilter::pg
