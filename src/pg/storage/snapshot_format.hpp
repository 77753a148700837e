// How an image is cut into rows: row 0 is the header; then come the slices in order, each in chunks
// of kRowData bytes, the last one shorter.
#pragma once

#include "core/base/hash.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {

inline uint64 chunks_of(Size slice_bytes) { return (slice_bytes + kRowData - 1) / kRowData; }

// The checksum of a chunk, its place included.
inline int64 sum_of(const ImageRow& row) {
  const uint64 seed = static_cast<uint64>(row.image) ^ mix64(static_cast<uint64>(row.number)) ^
                      mix64(static_cast<uint64>(row.chunks) << 32);
  return static_cast<int64>(hash_bytes(row.data, row.size, seed));
}

}  // namespace streamfilter::pg
