// Kind clq: copies of keys, which another size leaves in buckets that are not their own
// (format/copies.hpp). A fingerprint is the same in all of them, so what removes a key finds its
// copies; with a window, they are gone when it has passed.
#pragma once

#include "core/format/copies.hpp"
#include "core/kind/cache_line_queue.hpp"

namespace streamfilter::clq {

// Of an empty slice that takes what one of another size holds; and of one that takes what another
// of its own size holds.
void inherit_copies(const Parameters& old, const SliceState& from, const Parameters& p,
                    SliceState& into) noexcept;
void join_copies(const Parameters& p, SliceState& into, const SliceState& from) noexcept;

// Removes the copies of a key, not the key. Where too many others would have to go with them they
// stay, and places may not be joined any more (may_join_places).
void erase_copies(const Parameters& p, Slice slice, std::uint64_t hash) noexcept;

// Takes a fingerprint out of a bucket; the older ones move up.
void take_out(const Parameters& p, SliceState& state, unsigned char* line, unsigned start,
              unsigned slot) noexcept;

}  // namespace streamfilter::clq
