#include "core/filter/parallel_batch.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

std::uint32_t part_of(const Parameters& parameters, std::uint64_t hash) noexcept {
  if (parameters.k1 == 0) return slice_of(parameters, hash);
  return place_of(parameters, hash, 0).slice / slices_of_part(parameters);
}

}  // namespace

// Counting sort: starts[i + 1] counts part i, then says where it begins, at last where it ends.
void group_by_part(const Parameters& parameters, const Batch& batch) noexcept {
  std::uint32_t* const next = batch.starts + 1;
  const std::uint32_t parts = parts_of(parameters);
  const auto part = [&](std::uint32_t i) {
    return part_of(parameters, batch.arrivals[i].element.hash);
  };
  std::memset(batch.starts, 0, (std::size_t{parts} + 1) * sizeof *batch.starts);
  for (std::uint32_t i = 0; i < batch.count; ++i) ++next[part(i)];
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::uint32_t here = next[i];
    next[i] = before;
    before += here;
  }
  for (std::uint32_t i = 0; i < batch.count; ++i) batch.order[next[part(i)]++] = i;
}

void insert_part(Header* header, const Batch& batch, std::uint32_t part) noexcept {
  std::uint32_t* const first = batch.order + batch.starts[part];
  std::uint32_t* const end = batch.order + batch.starts[part + 1];
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return batch.arrivals[a].position < batch.arrivals[b].position;
  };
  if (!std::is_sorted(first, end, earlier)) std::sort(first, end, earlier);
  for (const std::uint32_t* i = first; i < end; ++i)
    batch.seen[*i] = insert(header, batch.arrivals[*i].element);
}

void insert_share(Header* header, const Batch& batch, std::uint32_t worker,
                  std::uint32_t workers) noexcept {
  const std::uint32_t parts = parts_of(header->parameters);
  for (std::uint32_t part = worker; part < parts; part += workers) insert_part(header, batch, part);
}

}  // namespace streamfilter
