// How kind clq cuts its lines, for tests of definitions.
#pragma once

#include <cstring>
#include <string>

#include "unit/support/filters.hpp"

namespace unit {

// Bits and number of the fingerprints in a bucket, such as "12x40". The definition must say the
// same when it is printed and read again, and make a filter that is valid.
inline std::string cache_line_shape(const std::string& definition) {
  const streamfilter::Parameters p = parameters_of(definition), again = parameters_of(text_of(p));
  BOOST_TEST(std::memcmp(&p, &again, sizeof p) == 0, text_of(p));
  BOOST_TEST(Filter(p).is_valid(), text_of(p));
  return std::to_string(option_value(p, "bits")) + "x" + std::to_string(option_value(p, "bucket"));
}

}  // namespace unit
