// The parallel SQF as printed (Dutta et al. 2013, section 5.2): one table, workers share its rows,
// and elements of a block come in any order; a bucket keeps the position of its element in the
// block. For comparison: the same with the number of the block, and one worker.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/hash.hpp"

namespace bench {

enum class PositionRule {
  in_order,       // one worker, elements in their order: the truth to compare with
  printed,        // pos, as of whatever block the bucket was filled in
  block_numbers,  // a bucket of an earlier block says: repeat
};

class PrintedParallelSqf {
 public:
  PrintedParallelSqf(std::uint64_t rows, unsigned buckets, PositionRule rule)
      : rows_(rows), buckets_(buckets), rule_(rule), table_(rows * buckets) {}

  // One block: hashes by position, processed in `order`. Sets `repeat` by position.
  void process(const std::vector<std::uint64_t>& hashes, const std::vector<std::uint32_t>& order,
               std::vector<bool>& repeat) {
    ++block_;
    for (const std::uint32_t position : order) {
      const std::uint64_t hash = hashes[position];
      Bucket* row = &table_[streamfilter::scale(hash, rows_) * buckets_];
      const std::uint32_t code = static_cast<std::uint32_t>(hash) | 1;  // 0: empty
      Bucket* bucket = find(row, code);
      if (bucket == nullptr) {
        *place_for(row) = {code, position, block_};
        repeat[position] = false;
      } else if (position >= bucket->position || is_old(*bucket)) {
        repeat[position] = true;
      } else {
        // This element came before the stored one, so the stored one is the repeat. If that was in
        // an earlier block, no element at its position needs a correction.
        if (bucket->block == block_) repeat[bucket->position] = true;
        bucket->position = position;
        bucket->block = block_;
        repeat[position] = false;
      }
    }
  }

 private:
  struct Bucket {
    std::uint32_t code, position, block;
  };

  bool is_old(const Bucket& bucket) const {
    return rule_ != PositionRule::printed && bucket.block != block_;
  }

  Bucket* find(Bucket* row, std::uint32_t code) const {
    for (unsigned i = 0; i < buckets_; ++i)
      if (row[i].code == code) return &row[i];
    return nullptr;
  }

  Bucket* place_for(Bucket* row) {
    for (unsigned i = 0; i < buckets_; ++i)
      if (row[i].code == 0) return &row[i];
    return &row[streamfilter::random_below(random_, buckets_)];
  }

  std::uint64_t rows_;
  unsigned buckets_;
  PositionRule rule_;
  std::vector<Bucket> table_;
  std::uint32_t block_ = 0;
  std::uint64_t random_ = 1;
};

}  // namespace bench
