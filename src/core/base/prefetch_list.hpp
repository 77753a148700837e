// Addresses that will be needed soon, fetched in a row.
//
// An instruction that fetches memory ahead does not wait for the memory, but it does for the
// translation of the address, and nothing behind it retires before that. In a large filter that
// takes about as long as the memory. So the addresses of several keys are collected first: then
// only fetches stand behind a fetch, and all are on their way at once.
#pragma once

namespace streamfilter {

class Prefetches {
 public:
  Prefetches() noexcept = default;
  Prefetches(const Prefetches&) = delete;
  Prefetches& operator=(const Prefetches&) = delete;

  // Any address; nothing is read that cannot be.
  void add(const void* address) noexcept {
    if (count_ == kMax) start();
    addresses_[count_++] = address;
  }

  // Gets what was added on its way into the cache.
  [[gnu::always_inline]] inline void start() noexcept {
    for (unsigned i = 0; i < count_; ++i) __builtin_prefetch(addresses_[i]);
    count_ = 0;
  }

  // What was added and not started.
  unsigned count() const noexcept { return count_; }
  const void* at(unsigned i) const noexcept { return addresses_[i]; }

 private:
  static constexpr unsigned kMax = 128;
  unsigned count_ = 0;
  const void* addresses_[kMax];
};

}  // namespace streamfilter
