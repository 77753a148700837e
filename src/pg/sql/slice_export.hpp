#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// The number of one of so many slices. Raises 22023 if it is none.
uint32 check_slice_number(const FilterRelation* relation, uint32 slices, int32 slice);

// The state of one slice of a local filter that is ready for use, as this transaction sees it, as a
// bytea for open_packet. Raises 22023 if there is no such slice.
struct varlena* make_slice_packet(FilterHandle* filter, int32 number);

// The state in such a bytea, and its slice's number. Raises 22P03.
const Header* open_slice_packet(const struct varlena* packet, uint32* slice);

}  // namespace streamfilter::pg
