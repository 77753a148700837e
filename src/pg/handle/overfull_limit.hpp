// How full a filter may be (overfull.hpp).
#pragma once

namespace streamfilter::pg {

struct FilterHandle;

// Of a filter whose state was just attached.
void set_overfull_limit(FilterHandle* filter);

}  // namespace streamfilter::pg
