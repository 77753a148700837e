// The limit of a filter's keys (overfull.hpp).
#pragma once

namespace streamfilter::pg {

struct FilterHandle;

// Sets the limit of a filter whose state was just attached.
void set_overfull_limit(FilterHandle* filter);

}  // namespace streamfilter::pg
