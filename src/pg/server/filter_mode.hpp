// What a filter does with the rows that it judges.
#pragma once

namespace streamfilter::pg {

enum class FilterMode : uint8 {
  enforce,  // repeats are discarded, marked, diverted
  shadow,   // all rows pass as they are; keys are remembered, repeats counted
  off,      // all rows pass as they are; the filter is not asked
};

}  // namespace streamfilter::pg
