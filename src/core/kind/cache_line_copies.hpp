// Kind clq: a resize leaves copies of keys in buckets other than their own (format/copies.hpp). All
// copies of a key have its fingerprint, so removing the key finds them. With a window, they are
// gone once it has passed.
#pragma once

#include "core/format/copies.hpp"
#include "core/kind/cache_line_queue.hpp"

namespace streamfilter::clq {

// Initialise an empty slice's notes about copies: before it takes the keys of another size, and
// before it takes those of another slice of its own size.
void inherit_copies(const Parameters& old, const SliceState& from, const Parameters& p,
                    SliceState& into) noexcept;
void join_copies(const Parameters& p, SliceState& into, const SliceState& from) noexcept;

// Removes the copies of a key, but not the key. If too many other keys would go with them, the
// copies stay, and places may not be joined any more (may_join_places).
void erase_copies(const Parameters& p, Slice slice, std::uint64_t hash) noexcept;

// Removes a fingerprint from a bucket; older ones move up.
void take_out(const Parameters& p, SliceState& state, unsigned char* line, unsigned start,
              unsigned rank) noexcept;

}  // namespace streamfilter::clq
