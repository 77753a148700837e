// What a filter does with rows that it judges.
#pragma once

namespace streamfilter::pg {

enum class FilterMode : uint8 {
  enforce,  // repeats are discarded, marked, diverted
  shadow,   // all rows pass unchanged; keys are remembered, repeats counted
  off,      // all rows pass unchanged; the filter is not asked
};

}  // namespace streamfilter::pg
