// How kind clq cuts its lines.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "unit/support/kind_checks.hpp"

namespace unit {

// Bits and number of the fingerprints in a bucket, such as "12x40".
inline std::string cache_line_shape(const std::string& definition) {
  const streamfilter::Parameters p = read_back(definition);
  return std::to_string(option_value(p, "bits")) + "x" + std::to_string(option_value(p, "bucket"));
}

// Every way that the kind works, and shapes with code of their own.
inline const std::vector<std::string> kCacheLines = {
    "clq(memory=2kB)",
    "clq(memory=4kB, slices=3)",
    "clq(memory=2kB, fpr=0.1)",
    "clq(memory=2kB, bits=9)",
    "clq(memory=2kB, bits=8, bucket=64)",
    "clq(memory=2kB, bits=8, bucket=16)",
    "clq(memory=2kB, bits=10)",
    "clq(memory=2kB, bits=16, bucket=32)",
    "clq(memory=2kB, bits=16, bucket=5)",
    "clq(memory=2kB, bits=16, bucket=1)",
    "clq(memory=2kB, bits=48, bucket=10)",
    "clq(memory=2kB, bits=33, bucket=3)",
    "clq(memory=2kB, bits=33, bucket=1)",
    "clq(memory=2kB, policy=fifo)",
    "clq(memory=2kB, policy=second)",
    "clq(memory=2kB, bits=13, bucket=5, policy=fifo)",
    "clq(memory=2kB, bits=13, bucket=5, policy=second)",
    "clq(memory=2kB, window='10 seconds')",
    "clq(memory=2kB, window='10 seconds', policy=fifo)",
    "clq(memory=2kB, window='10 seconds', policy=second)",
    "clq(memory=2kB, window='10 seconds', bits=11, bucket=7)",
    "clq(memory=2kB, importance_range='0,100')",
    "clq(memory=2kB, importance_levels='10,50,90', policy=fifo)",
    "clq(memory=2kB, importance_levels='10,50,90', policy=fifo, bits=16)",
    "clq(memory=2kB, importance_range='0,100', window='10 seconds')",
    "clq(memory=2kB, lines=2)",
    "clq(memory=2kB, lines=2, fpr=0.1)",
    "clq(memory=2kB, lines=2, bits=16, bucket=12)",
    "clq(memory=4kB, lines=2, slices=3, bits=16, bucket=12)",
    "clq(memory=2kB, lines=2, bits=48)",
};

// Where a key lies in one line, for plain versions of the rule.
class CacheLines {
 public:
  using Bucket = std::pair<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>>;

  explicit CacheLines(const streamfilter::Parameters& p)
      : bits(option_value(p, "bits")),
        length(option_value(p, "bucket")),
        lines((p.slice_bytes - sizeof(streamfilter::SliceState)) / 64),
        buckets((option_value(p, "window") > 0 ? 480 / (bits + 4) : 512 / bits) / length),
        slots(p.slices * lines * buckets * length),
        p_(p) {}

  // Of the key: its slice, line and bucket of the line.
  Bucket bucket(std::uint64_t hash) const {
    const unsigned __int128 at =
        static_cast<unsigned __int128>(streamfilter::mix64(hash + streamfilter::kGoldenRatio)) *
        lines;
    return {slice_of(p_, hash),
            {static_cast<std::uint64_t>(at >> 64),
             streamfilter::scale(static_cast<std::uint64_t>(at), buckets)}};
  }

  std::uint64_t fingerprint(std::uint64_t hash) const {
    return 1 + streamfilter::position(hash, 1, (std::uint64_t{1} << bits) - 1);
  }

  // Bits of a fingerprint; fingerprints of a bucket; lines of a slice; buckets of a line; and the
  // fingerprints that a filter has room for.
  const std::uint64_t bits, length, lines, buckets, slots;

 private:
  streamfilter::Parameters p_;
};

// The odds that a correct program fails a check: four standard errors.
inline constexpr double kFourErrors = 3e-5;

// How many keys are missed of those that came `others` keys ago, after a warm-up. Only every 400th
// key is tested, so that hardly two share a bucket. feed(filter, i) inserts the i-th key.
template <typename Feed>
double count_missed(Filter& filter, std::uint64_t warm_up, std::uint64_t others,
                    std::uint64_t samples, Feed feed) {
  double missed = 0;
  std::uint64_t i = 0;
  while (i < warm_up) feed(filter, i++);
  for (; samples > 0; --samples) {
    for (unsigned n = 0; n < 400; ++n) feed(filter, i++);
    missed += !filter.test(key(i - 1 - others));
  }
  return missed;
}

}  // namespace unit
