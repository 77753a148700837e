// Filters from the text of a definition, for all programs of bench.
#pragma once

#include <cstddef>
#include <string>

#include "core/filter/filter.hpp"

namespace bench {

// Reads and completes a definition. False: it is not possible; `problem` says why, and `parameters`
// are unchanged. The caller decides what to print, and whether to end.
inline bool make_parameters(const std::string& definition_text,
                            streamfilter::Parameters& parameters, streamfilter::Problem& problem) {
  streamfilter::Definition definition;
  std::size_t used;
  if (!parse_definition(definition_text.data(), definition_text.size(), definition, used,
                        problem) ||
      !complete(definition, problem))
    return false;
  parameters = definition.parameters;
  return true;
}

}  // namespace bench
