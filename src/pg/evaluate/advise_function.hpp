// What streamfilter_advise is asked for.
#pragma once

#include "core/filter/definition.hpp"

namespace streamfilter::pg {

// Raises 22023 for what is out of range.
Definition read_request(const char* memory, double fpr);

}  // namespace streamfilter::pg
