// Addresses that will be needed soon, fetched together.
//
// A prefetch instruction does not wait for the memory, but for the translation of the address, and
// no later instruction retires before that. In a large filter the translation takes about as long
// as the memory. So we collect the addresses of several keys first: then only prefetches follow a
// prefetch, and all run at once.
#pragma once

namespace streamfilter {

class Prefetches {
 public:
  Prefetches() noexcept = default;
  Prefetches(const Prefetches&) = delete;
  Prefetches& operator=(const Prefetches&) = delete;

  // Takes any address: an invalid one is not read.
  void add(const void* address) noexcept {
    if (count_ == kMax) start();
    addresses_[count_++] = address;
  }

  // Prefetches what was added.
  [[gnu::always_inline]] inline void start() noexcept {
    for (unsigned i = 0; i < count_; ++i) __builtin_prefetch(addresses_[i]);
    count_ = 0;
  }

  // Number of addresses added and not started.
  unsigned count() const noexcept { return count_; }
  const void* at(unsigned i) const noexcept { return addresses_[i]; }

 private:
  static constexpr unsigned kMax = 128;
  unsigned count_ = 0;
  const void* addresses_[kMax];
};

}  // namespace streamfilter
