#include "streamfilter/core/parallel_batch.hpp"

#include <algorithm>
#include <cstring>

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter {

// Counting sort: starts[i + 1] counts slice i, then says where it begins, at last where it ends.
void group_by_slice(const Parameters& parameters, const Batch& batch) noexcept {
  std::uint32_t* const next = batch.starts + 1;
  const auto slice = [&](std::uint32_t i) {
    return parameters.k1 > 0 ? 0 : slice_of(parameters, batch.arrivals[i].element.hash);
  };
  std::memset(batch.starts, 0, (std::size_t{parameters.slices} + 1) * sizeof *batch.starts);
  for (std::uint32_t i = 0; i < batch.count; ++i) ++next[slice(i)];
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < parameters.slices; ++i) {
    const std::uint32_t here = next[i];
    next[i] = before;
    before += here;
  }
  for (std::uint32_t i = 0; i < batch.count; ++i) batch.order[next[slice(i)]++] = i;
}

void insert_slice(Header* header, const Batch& batch, std::uint32_t slice) noexcept {
  std::uint32_t* const first = batch.order + batch.starts[slice];
  std::uint32_t* const end = batch.order + batch.starts[slice + 1];
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return batch.arrivals[a].position < batch.arrivals[b].position;
  };
  if (!std::is_sorted(first, end, earlier)) std::sort(first, end, earlier);
  for (const std::uint32_t* i = first; i < end; ++i)
    batch.seen[*i] = insert(header, batch.arrivals[*i].element);
}

void insert_share(Header* header, const Batch& batch, std::uint32_t worker,
                  std::uint32_t workers) noexcept {
  for (std::uint32_t slice = worker; slice < header->parameters.slices; slice += workers)
    insert_slice(header, batch, slice);
}

}  // namespace streamfilter
