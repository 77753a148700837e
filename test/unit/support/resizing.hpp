// Filters that get another size.
#pragma once

#include "core/filter/resize.hpp"
#include "unit/support/filters.hpp"

namespace unit {

inline std::string with_memory(const std::string& definition, const std::string& memory) {
  const std::size_t open = definition.find('(');
  if (open == std::string::npos) return definition + "(memory=" + memory + ")";
  return definition.substr(0, open + 1) + "memory=" + memory + ", " + definition.substr(open + 1);
}

// As it is asked for, not completed.
inline streamfilter::Definition definition_for(const std::string& text) {
  streamfilter::Definition definition;
  std::size_t used = 0;
  streamfilter::Problem problem;
  BOOST_REQUIRE_MESSAGE(parse_definition(text.data(), text.size(), definition, used, problem),
                        text << ": " << problem.message);
  return definition;
}

inline Filter copy_in(const streamfilter::Parameters& parameters, const Filter& from) {
  Filter to(parameters);
  std::vector<unsigned char> scratch(parameters.slice_bytes *
                                     scratch_slices(from.parameters(), parameters));
  for (std::uint32_t i = 0; i < parameters.slices; ++i)
    resize_slice(to.header(), i, from.header(), scratch.data());
  return to;
}

// False: the state cannot be converted.
inline bool resize(Filter& filter, const std::string& text) {
  streamfilter::Parameters parameters{};
  streamfilter::Problem problem;
  if (!resized_parameters(filter.parameters(), definition_for(text), &parameters, problem) ||
      !can_take_over(filter.header(), {0, filter.parameters().slices}, parameters, problem))
    return false;
  filter = copy_in(parameters, filter);
  BOOST_TEST(filter.is_valid());
  return true;
}

}  // namespace unit
