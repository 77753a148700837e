// Characters of text that is read.
#pragma once

namespace streamfilter {

inline bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace streamfilter
