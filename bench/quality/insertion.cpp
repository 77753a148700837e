// Where a new key should enter the buckets of kind clq when memory is short: at the front, as it
// does, or further back, so that new keys do not wash out all others.
//
//   make bench
//   build/bench/insertion [--quick]
//
// The streams of bench/quality/compare.cpp at 1 to 8 bits per key. Buckets are those of clq for
// that fpr and number of keys; a key that is found moves to the front. Results are false negatives
// in per cent, and the false-positive rate, which hardly depends on the way keys enter. A new key
// enters
//   front     at the front (LRU)
//   second    behind the first place (clq has it as policy second)
//   half      in the middle
//   end       at the last place (LIP)
//   rarely    at the last place, one in 16 at the front (BIP)
//   adaptive  in one bucket of 16 as `front`, in another as `rarely`, and in the others as in those
//             of the two that have had more hits of late (set duelling: Qureshi, Jaleel, Patt,
//             Steely, Emer, Adaptive Insertion Policies for High Performance Caching, ISCA 2007)
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/quality/compare_streams.hpp"
#include "core/kind/kind_registry.hpp"
#include "core/model/clq_model.hpp"

namespace {

using namespace streamfilter;
using namespace bench;

enum Way : unsigned { kFront, kSecond, kHalf, kEnd, kRarely, kAdaptive, kWays };
const char* const kNames[] = {"front", "second", "half", "end", "rarely", "adaptive"};

class Buckets {
 public:
  Buckets(const clq_model::LineShape& shape, std::uint64_t lines, unsigned way)
      : shape_(shape),
        way_(way),
        count_(lines * shape.buckets()),
        places_(count_ * shape.length),
        size_(count_) {}

  bool insert(std::uint64_t hash) {
    const std::uint64_t bucket = position(hash, 0, count_);
    const std::uint32_t fingerprint =
        static_cast<std::uint32_t>(1 + position(hash, 1, (std::uint64_t{1} << shape_.bits) - 1));
    std::uint32_t* first = &places_[bucket * shape_.length];
    std::uint32_t* end = first + size_[bucket];
    std::uint32_t* at = std::find(first, end, fingerprint);
    if (at != end) {
      std::rotate(first, at, at + 1);
      if (bucket % 16 < 2) vote(bucket % 16 == 0 ? 1 : -1);
      return true;
    }
    if (size_[bucket] < shape_.length) ++size_[bucket], ++end;
    std::uint32_t* entry = first + entrance(bucket, static_cast<unsigned>(end - first));
    std::move_backward(entry, end - 1, end);
    *entry = fingerprint;
    return false;
  }

 private:
  void vote(int by) { votes_ = std::clamp(votes_ + by, -kMostVotes, kMostVotes); }

  unsigned entrance(std::uint64_t bucket, unsigned size) {
    unsigned way = way_;
    if (way == kAdaptive)
      way = bucket % 16 == 0 || (bucket % 16 > 1 && votes_ >= 0) ? kFront : kRarely;
    if (way == kRarely) way = random_.below(16) == 0 ? kFront : kEnd;
    return way == kFront    ? 0
           : way == kSecond ? std::min(1u, size - 1)
           : way == kHalf   ? size / 2
                            : size - 1;
  }

  static constexpr int kMostVotes = 1024;
  clq_model::LineShape shape_;
  unsigned way_;
  int votes_ = 0;
  std::uint64_t count_;
  std::vector<std::uint32_t> places_;
  std::vector<unsigned> size_;
  Random random_{1};
};

void compare(const ComparedStream& stream, double bits, double fpr) {
  const std::uint64_t lines =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(bits * stream.keys() / 512), 1);
  clq_model::LineShape shape{};
  if (!clq_model::best_shape_for(stream.keys() / static_cast<double>(lines), fpr, 0, 0, shape))
    return;
  std::printf("%-16s %4g %5g %3ux%-3u", stream.name.c_str(), bits, fpr, shape.length, shape.bits);
  double least = 0, most = 0;
  for (unsigned way = 0; way < kWays; ++way) {
    Buckets buckets(shape, lines, way);
    Errors errors;
    stream.rows.for_each_row([&](std::size_t row, std::uint32_t key, bool repeat) {
      const bool seen = buckets.insert(hash_word(key, 0));
      if (static_cast<double>(row) >= stream.counted_from()) errors.count(repeat, seen);
    });
    std::printf(" %8.2f", 100 * errors.fnr());
    least = way == 0 ? errors.fpr() : std::min(least, errors.fpr());
    most = std::max(most, errors.fpr());
  }
  std::printf("  %6.2f - %.2f\n", 100 * least, 100 * most);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  std::printf("%-16s %4s %5s %7s", "stream", "bits", "fpr", "shape");
  for (const char* name : kNames) std::printf(" %8s", name);
  std::printf("  %s\n", "FPR %");
  for (const ComparedStream& stream : compared_streams(quick))
    for (const double bits : {1., 2., 3., 4., 8.})
      for (const double fpr : {0.03, 0.1, 0.3}) compare(stream, bits, fpr);
}
