// A block of a stream, worked off by any number of workers at once (Dutta et al. 2013,
// section 5.2), with the answers and the final bytes that one worker gets who takes the elements in
// their order.
//
// A filter has groups that no key shares with another group: its slices, or, where a key has probes
// in several (core/format/layout.hpp), all the slices that its keys are spread over; a vertical
// filter is one group. Each has its own rows, counters and generators. So elements are grouped by
// group, a group belongs to one worker, and in it elements are taken in the order of their
// positions. A bucket needs no `pos` for that, and no block number: what the paper's workers find
// out afterwards by comparing positions cannot happen here.
//
// Memory is the caller's, and so are the threads: core knows none.
#pragma once

#include "core/filter/filter.hpp"

namespace streamfilter {

// An element and its place in the stream, unique in its batch.
struct StreamElement {
  Element element;
  std::int64_t position;
};

struct ElementBatch {
  const StreamElement* elements;  // in any order
  std::uint32_t count;
  std::uint32_t* order;   // `count` of them: indexes of elements, group by group
  std::uint32_t* starts;  // one more than groups_of(): where in `order` each begins
  bool* seen;             // `count` answers, by index of the element
};

// Fills `order` and `starts`. Within a group the elements keep their order.
void sort_by_group(const Parameters& parameters, const ElementBatch& batch) noexcept;

// Inserts what belongs to one group, by position, and stores the answers. Different groups may be
// worked on at the same time.
void insert_group(Header* header, const ElementBatch& batch, std::uint32_t group) noexcept;

}  // namespace streamfilter
