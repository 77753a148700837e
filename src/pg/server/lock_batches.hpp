// Handles items under numbered locks, all items of one lock in one go.
#pragma once

namespace streamfilter::pg {

// Sorts up to kMax items by their numbers, stably. Few items, or numbers above kMaxNumbers, are not
// worth sorting, and keep their order.
class LockBatches {
 public:
  static constexpr uint32 kMax = 512;
  static constexpr uint32 kMaxNumbers = 128;

  // `number(i)`, below `numbers`, is the number of item i.
  template <typename NumberOf>
  LockBatches(uint32 count, uint32 numbers, NumberOf&& number) : count_(count) {
    for (uint32 i = 0; i < count; ++i) {
      number_[i] = number(i);
      order_[i] = i;
    }
    if (count > numbers && numbers <= kMaxNumbers) sort(numbers);
  }

  uint32 count() const { return count_; }
  uint32 at(uint32 i) const { return order_[i]; }
  uint32 number(uint32 i) const { return number_[order_[i]]; }

  // Has the item at position i another number than the one before?
  bool begins(uint32 i) const { return i == 0 || number(i) != number(i - 1); }

 private:
  void sort(uint32 numbers) {
    uint32 next[kMaxNumbers + 1] = {};
    for (uint32 i = 0; i < count_; ++i) ++next[number_[i] + 1];
    for (uint32 i = 1; i <= numbers; ++i) next[i] += next[i - 1];
    for (uint32 i = 0; i < count_; ++i) order_[next[number_[i]]++] = i;
  }

  uint32 count_;
  uint32 number_[kMax];
  uint32 order_[kMax];
};

}  // namespace streamfilter::pg
