#include "core/filter/parallel_batch.hpp"

namespace streamfilter {
static std::uint32_t group_of(const Parameters& parameters, std::uint64_t hash) noexcept {
  if (parameters.k1 == 0) return slice_of(parameters, hash);
  return probe_of(parameters, hash, 0).slice / slices_of_group(parameters);
}

// Counting sort: starts[i + 1] counts group i, then says where it begins, at last where it ends.
void sort_by_group(const Parameters& parameters, const ElementBatch& batch) noexcept {
  std::uint32_t* const next = batch.starts + 1;
  const std::uint32_t groups = groups_of(parameters);
  const auto group = [&](std::uint32_t i) {
    return group_of(parameters, batch.elements[i].element.hash);
  };
  std::memset(batch.starts, 0, (std::size_t{groups} + 1) * sizeof *batch.starts);
  for (std::uint32_t i = 0; i < batch.count; ++i) ++next[group(i)];
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < groups; ++i) {
    const std::uint32_t here = next[i];
    next[i] = before;
    before += here;
  }
  for (std::uint32_t i = 0; i < batch.count; ++i) batch.order[next[group(i)]++] = i;
}

void insert_group(Header* header, const ElementBatch& batch, std::uint32_t group) noexcept {
  std::uint32_t* const first = batch.order + batch.starts[group];
  std::uint32_t* const end = batch.order + batch.starts[group + 1];
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return batch.elements[a].position < batch.elements[b].position;
  };
  if (!std::is_sorted(first, end, earlier)) std::sort(first, end, earlier);
  for (const std::uint32_t* i = first; i < end; ++i)
    batch.seen[*i] = insert(header, batch.elements[*i].element);
}

}  // namespace streamfilter
