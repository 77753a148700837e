// Buffering and FPBuffering (Deng, Rafiei 2006 §2.2, §5.2): the exact fingerprints of the most
// recent keys, replaced by LRU or by Clock. Kind `lru` calls the keys it finds repeats; kind
// `fplru` also calls a key it does not find a repeat with probability q, so that its false-positive
// rate can be compared with a Stable Bloom Filter's.
//
// The paper compares error rates without the cost of finding and replacing an entry. Here all of it
// lies in the slice and counts as memory. A slice of n entries holds, packed:
//   Clock only: a bit per entry, was it seen since the hand passed; a bit, does it hold a key
//   n fingerprints of entry_bits
//   n heads of the chains of a hash table, n links of the chains
//   LRU only: for each entry the next newer one and the next older one
// Entries are numbered from 1; 0 ends a list, so that zeros are an empty filter.
#include <boost/math/special_functions/beta.hpp>

#include "core/base/math_policy.hpp"
#include "core/bits/packed_words.hpp"
#include "core/kind/kind_list.hpp"
#include "core/kind/kind_registry.hpp"
#include "core/kind/kind_tools.hpp"

namespace streamfilter {
namespace {

enum Word : unsigned { kEntryBits, kPolicy, kQ, kEntries };  // kEntries: n of one slice

enum Policy : std::uint64_t { lru, clock };

constexpr const char* kPolicies[] = {"lru", "clock", nullptr};

constexpr OptionSpec kOptions[] = {
    integer_option(kEntryBits, "entry_bits", 16, 64),
    {.word = kPolicy, .name = "policy", .type = OptionType::choice, .choices = kPolicies},
    {.word = kQ, .name = "q", .type = OptionType::real, .low = 0, .high = 1},  // fplru only
};

constexpr std::uint64_t kDefaultEntryBits = 64;  // §5.2

std::uint64_t words_for(std::uint64_t bits) noexcept { return (bits + 63) / 64; }

unsigned links_per_entry(std::uint64_t policy) noexcept { return policy == lru ? 4 : 2; }

// The bits of n entries; a link can name at most `largest`.
std::uint64_t bits_of(std::uint64_t n, std::uint64_t entry_bits, std::uint64_t policy,
                      unsigned link_bits) noexcept {
  const std::uint64_t marks = policy == clock ? 2 * 64 * words_for(n) : 0;
  return marks + n * (entry_bits + links_per_entry(policy) * link_bits);
}

// The number of entries that fit into the body of a slice.
std::uint64_t entries_in(std::uint64_t bytes, std::uint64_t entry_bits,
                         std::uint64_t policy) noexcept {
  const std::uint64_t bits = (bytes - PackedWords<>::kSlack) * 8;
  std::uint64_t most = 0;
  for (unsigned link_bits = 1; link_bits < 48; ++link_bits) {
    const std::uint64_t largest = (std::uint64_t{1} << link_bits) - 1;
    const std::uint64_t each =
        entry_bits + links_per_entry(policy) * link_bits + (policy == clock ? 2 : 0);
    std::uint64_t n = std::min(largest, bits / each);
    while (n > 0 && bits_of(n, entry_bits, policy, link_bits) > bits) --n;  // whole words of marks
    most = std::max(most, n);
  }
  return most;
}

// The counters of a slice.
template <typename State>
struct Counters {
  explicit Counters(State& state) noexcept
      : count(state.own[0]),
        newest(state.own[1]),
        oldest(state.own[2]),
        free(state.own[3]),
        used(state.own[4]) {}

  using Word = std::conditional_t<std::is_const_v<State>, const std::uint64_t, std::uint64_t>;
  Word& count;   // entries that hold a key
  Word& newest;  // LRU: ends of the list; Clock: unused
  Word& oldest;  // LRU: the other end; Clock: the hand, the index of the entry to look at next
  Word& free;    // first of the entries that were erased
  Word& used;    // entries 1 … used have held a key
};

// A buffer in the bytes of a slice.
template <typename State, typename Byte>
class Buffer : private Counters<State> {
 public:
  Buffer(const Parameters& p, BasicSlice<State, Byte> slice) noexcept
      : Buffer(p, slice, bit_width(p.integer(kEntries))) {}

  std::uint64_t size() const noexcept { return count; }

  std::uint64_t fingerprint(std::uint64_t hash) const noexcept {
    return entry_bits_ == 64 ? hash : mix64(hash) >> (64 - entry_bits_);
  }

  // The entry of a fingerprint; 0: none.
  std::uint64_t find(std::uint64_t print) const noexcept {
    std::uint64_t id = heads_.get(bucket(print));
    while (id != 0 && prints_.get(id - 1) != print) id = next_.get(id - 1);
    return id;
  }

  // Notes that an entry was just seen.
  void touch(std::uint64_t id) const noexcept {
    if (policy_ == clock) {
      set_mark(kSeen, id, true);
    } else if (id != newest) {
      leave_list(id);
      enter_list(id);
    }
  }

  // Remembers a fingerprint that is not there.
  void add(std::uint64_t print) const noexcept {
    const std::uint64_t id = free_entry(), chain = bucket(print);
    prints_.set(id - 1, print);
    next_.set(id - 1, heads_.get(chain));
    heads_.set(chain, id);
    if (policy_ == clock) {
      set_mark(kSeen, id, true);
      set_mark(kHeld, id, true);
    } else {
      enter_list(id);
    }
    ++count;
  }

  // Forgets an entry. It is marked as free by being its own neighbour in the LRU list.
  void remove(std::uint64_t id) const noexcept {
    vacate(id);
    prints_.set(id - 1, 0);
    next_.set(id - 1, free);
    free = id;
    if (policy_ == lru) {
      newer_.set(id - 1, id);
      older_.set(id - 1, id);
    }
  }

  std::uint64_t room() const noexcept { return n_; }
  bool keeps_order() const noexcept { return policy_ == lru; }

  // ---- for merging

  // Visits fingerprints, the most recent first, until `visit` returns false. Clock has no order.
  template <typename Visit>
  void for_each(Visit visit) const noexcept {
    if (policy_ == lru) {
      for (std::uint64_t id = newest; id != 0 && visit(prints_.get(id - 1));
           id = older_.get(id - 1))
        ;
    } else {
      for (std::uint64_t id = 1; id <= used; ++id)
        if (mark(kHeld, id) && !visit(prints_.get(id - 1))) return;
    }
  }

  // Visits the most recent `count`, the least recent of them first.
  template <typename Visit>
  void for_each_backwards(std::uint64_t most, Visit visit) const noexcept {
    std::uint64_t id = newest;
    for (std::uint64_t i = 1; i < most; ++i) id = older_.get(id - 1);
    for (; id != 0; id = newer_.get(id - 1)) visit(prints_.get(id - 1));
  }

  // ---- for another size

  bool keeps_hashes() const noexcept { return entry_bits_ == 64; }

  // Visits every entry, the next to be replaced first; with Clock, also passes the entry's mark.
  template <typename Visit>
  void for_each_by_age(Visit visit) const noexcept {
    if (policy_ == lru) {
      for (std::uint64_t id = oldest; id != 0; id = newer_.get(id - 1))
        visit(prints_.get(id - 1), true);
      return;
    }
    for (std::uint64_t i = 0; i < used; ++i) {
      const std::uint64_t id = (oldest + i) % used + 1;
      if (mark(kHeld, id)) visit(prints_.get(id - 1), mark(kSeen, id));
    }
  }

  void note_unseen(std::uint64_t print) const noexcept {
    if (policy_ == clock) set_mark(kSeen, find(print), false);
  }

  void touch_oldest() const noexcept { touch(oldest); }
  void remove_oldest() const noexcept { remove(oldest); }

  // Forgets a random entry.
  void remove_any(std::uint64_t& random) const noexcept {
    std::uint64_t id;
    do id = random_below(random, used) + 1;
    while (!mark(kHeld, id));
    remove(id);
  }

  // True if these bytes can be a buffer: every entry in use is exactly once in the chain of its
  // bucket and, with LRU, in the list; every other is in the list of free ones. No walk visits more
  // entries than there are, and links are checked before they are followed.
  bool check() const noexcept {
    if (used > n_ || count > used) return false;
    return (policy_ == clock ? check_marks() : check_list()) && check_chains() && check_free() &&
           check_rest();
  }

 private:
  using Words = PackedWords<Byte>;
  using Counters<State>::count;
  using Counters<State>::newest;
  using Counters<State>::oldest;
  using Counters<State>::free;
  using Counters<State>::used;

  enum Mark : unsigned { kSeen, kHeld };

  Buffer(const Parameters& p, BasicSlice<State, Byte> slice, unsigned link_bits) noexcept
      : Counters<State>(*slice.state),
        n_(p.integer(kEntries)),
        policy_(p.integer(kPolicy)),
        entry_bits_(static_cast<unsigned>(p.integer(kEntryBits))),
        body_(slice.body()),
        bytes_(slice.bytes),
        end_(bits_of(n_, entry_bits_, policy_, link_bits)),
        prints_(body_, policy_ == clock ? 2 * 64 * words_for(n_) : 0, entry_bits_),
        heads_(body_, end_ - links_per_entry(policy_) * link_bits * n_, link_bits),
        next_(body_, end_ - (links_per_entry(policy_) - 1) * link_bits * n_, link_bits),
        newer_(body_, end_ - 2 * link_bits * n_, link_bits),
        older_(body_, end_ - link_bits * n_, link_bits) {}

  std::uint64_t bucket(std::uint64_t print) const noexcept {
    return scale(mix64(print + kGoldenRatio), n_);
  }

  // ---- an entry for a new key

  std::uint64_t free_entry() const noexcept {
    if (free != 0) {
      const std::uint64_t id = free;
      free = next_.get(id - 1);
      return id;
    }
    if (used < n_) return ++used;
    const std::uint64_t id = policy_ == clock ? advance_hand() : oldest;
    vacate(id);
    return id;
  }

  // Takes an entry out of its chain and list; its memory stays taken.
  void vacate(std::uint64_t id) const noexcept {
    leave_chain(id);
    if (policy_ == clock) {
      set_mark(kSeen, id, false);
      set_mark(kHeld, id, false);
    } else {
      leave_list(id);
    }
    --count;
  }

  void leave_chain(std::uint64_t id) const noexcept {
    const std::uint64_t chain = bucket(prints_.get(id - 1)), after = next_.get(id - 1);
    std::uint64_t at = heads_.get(chain);
    if (at == id) return heads_.set(chain, after);
    while (next_.get(at - 1) != id) at = next_.get(at - 1);
    next_.set(at - 1, after);
  }

  // ---- LRU

  void enter_list(std::uint64_t id) const noexcept {
    newer_.set(id - 1, 0);
    older_.set(id - 1, newest);
    (newest != 0 ? newer_.set(newest - 1, id) : void(oldest = id));
    newest = id;
  }

  void leave_list(std::uint64_t id) const noexcept {
    const std::uint64_t younger = newer_.get(id - 1), elder = older_.get(id - 1);
    (younger != 0 ? older_.set(younger - 1, elder) : void(newest = elder));
    (elder != 0 ? newer_.set(elder - 1, younger) : void(oldest = younger));
  }

  // ---- Clock

  Byte* word_at(Mark mark, std::uint64_t index) const noexcept {
    return body_ + (mark * words_for(n_) + index / 64) * 8;
  }

  std::uint64_t word(Mark mark, std::uint64_t index) const noexcept {
    std::uint64_t bits;
    std::memcpy(&bits, word_at(mark, index), 8);
    return bits;
  }

  bool mark(Mark which, std::uint64_t id) const noexcept {
    return word(which, id - 1) >> (id - 1) % 64 & 1;
  }

  void set_mark(Mark which, std::uint64_t id, bool value) const noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (id - 1) % 64;
    const std::uint64_t bits = word(which, id - 1);
    const std::uint64_t changed = value ? bits | bit : bits & ~bit;
    std::memcpy(word_at(which, id - 1), &changed, 8);
  }

  // The hand passes entries that were seen since its last visit, and takes the first that was not.
  // It reads a word of marks at once; all entries hold keys.
  std::uint64_t advance_hand() const noexcept {
    for (;;) {
      const std::uint64_t end = std::min(n_, (oldest / 64 + 1) * 64);
      const std::uint64_t ahead = ~std::uint64_t{0} >> (64 - (end - oldest)) << oldest % 64;
      const std::uint64_t seen = word(kSeen, oldest), unseen = ~seen & ahead;
      const std::uint64_t passed = unseen != 0 ? ahead & ((unseen & -unseen) - 1) : ahead;
      const std::uint64_t left = seen & ~passed;
      std::memcpy(word_at(kSeen, oldest), &left, 8);
      const std::uint64_t id =
          oldest / 64 * 64 + static_cast<std::uint64_t>(__builtin_ctzll(unseen | 1ull << 63)) + 1;
      oldest = unseen != 0 ? id % n_ : end % n_;
      if (unseen != 0) return id;
    }
  }

  // ---- checks

  bool is_entry(std::uint64_t id) const noexcept { return id != 0 && id <= used; }

  bool is_free(std::uint64_t id) const noexcept {
    return policy_ == clock ? !mark(kHeld, id) : newer_.get(id - 1) == id;
  }

  bool check_marks() const noexcept {
    std::uint64_t held = 0;
    for (std::uint64_t i = 0; i < words_for(n_) * 64; ++i) {
      const bool holds = word(kHeld, i) >> i % 64 & 1, seen = word(kSeen, i) >> i % 64 & 1;
      if ((holds && i >= used) || (seen && !holds)) return false;
      held += holds;
    }
    return held == count && newest == 0 && oldest < n_;
  }

  // An entry has one newer neighbour, so a walk that agrees with it in both directions meets no
  // entry twice.
  bool check_list() const noexcept {
    std::uint64_t frees = 0, last = 0, met = 0;
    for (std::uint64_t id = 1; id <= used; ++id)
      if (is_free(id)) {
        if (older_.get(id - 1) != id) return false;
        ++frees;
      }
    if (frees != used - count) return false;
    for (std::uint64_t id = newest; id != 0; last = id, id = older_.get(id - 1), ++met)
      if (!is_entry(id) || met == count || newer_.get(id - 1) != last) return false;
    return met == count && oldest == last;
  }

  bool check_chains() const noexcept {
    std::uint64_t met = 0;
    for (std::uint64_t chain = 0; chain < n_; ++chain)
      for (std::uint64_t id = heads_.get(chain); id != 0; id = next_.get(id - 1), ++met)
        if (!is_entry(id) || met == count || is_free(id) || bucket(prints_.get(id - 1)) != chain)
          return false;
    return met == count;
  }

  bool check_free() const noexcept {
    std::uint64_t met = 0;
    for (std::uint64_t id = free; id != 0; id = next_.get(id - 1), ++met)
      if (!is_entry(id) || met == used - count || !is_free(id) || prints_.get(id - 1) != 0)
        return false;
    return met == used - count;
  }

  // Bits that no entry uses yet are zero.
  bool check_rest() const noexcept {
    for (std::uint64_t i = used; i < n_; ++i) {
      if (prints_.get(i) != 0 || next_.get(i) != 0) return false;
      if (policy_ == lru && (newer_.get(i) | older_.get(i)) != 0) return false;
    }
    for (std::uint64_t bit = end_; bit < bytes_ * 8; ++bit)
      if (body_[bit / 8] >> bit % 8 & 1) return false;
    return true;
  }

  std::uint64_t n_, policy_;
  unsigned entry_bits_;
  Byte* body_;
  std::uint64_t bytes_, end_;  // end_: the first bit behind the last array
  Words prints_, heads_, next_, newer_, older_;
};

template <typename State, typename Byte>
Buffer<State, Byte> buffer(const Parameters& p, BasicSlice<State, Byte> slice) noexcept {
  return {p, slice};
}

// The probability that a new key's fingerprint equals one of n in a slice. Equal hashes count, too:
// all hashes of a slice begin with the same bits.
double collisions(const Parameters& p, double n) noexcept {
  const double equal_hashes = p.slices * 0x1p-64;
  const double entry_bits = to_real(p.integer(kEntryBits));
  return std::min(1.0,
                  n * (entry_bits < 64 ? std::exp2(-entry_bits) + equal_hashes : equal_hashes));
}

double q_of(const Parameters& p) noexcept { return p.kind == Kind::fplru ? p.real(kQ) : 0; }

double rate(const Parameters& p, double n) noexcept {
  const double q = q_of(p);
  return q + (1 - q) * collisions(p, n);
}

double entries(const Parameters& p) noexcept { return to_real(p.integer(kEntries)); }

// Leaves to q the part of fpr that collisions do not use up.
bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kEntryBits)) p.set_integer(kEntryBits, kDefaultEntryBits);
  if (!definition.has(kPolicy)) p.set_integer(kPolicy, lru);
  p.set_integer(kEntries, entries_in(body_bytes(p), p.integer(kEntryBits), p.integer(kPolicy)));
  const double fpr = definition.wanted_fpr(), missed = collisions(p, entries(p));
  const bool explicitly = p.kind == Kind::fplru ? definition.has(kQ) : definition.has(kEntryBits);
  if (!explicitly && missed > fpr && !definition.break_fpr(words(kPolicy))) {
    problem.set(Error::conflict, "kind %s cannot keep fpr %g", find_ops(p.kind)->name, fpr);
    problem.add_detail(
        "Among %.0f fingerprints of %u bits, a new key would be found with "
        "probability %.3g.",
        entries(p), static_cast<unsigned>(p.integer(kEntryBits)), missed);
    return problem.add_hint("Use more entry_bits, less memory or a larger fpr.");
  }
  if (p.kind == Kind::fplru && !definition.has(kQ))
    p.set_real(kQ, std::max(0.0, (fpr - missed) / (1 - missed) * (1 - 1e-12)));
  return true;
}

// FPBuffering's answer for a key that is not found. It is drawn from the key and the generator's
// state, so that a test gives the answer of the next insertion.
bool guess(const Parameters& p, const SliceState& state, std::uint64_t hash) noexcept {
  if (p.kind != Kind::fplru) return false;
  std::uint64_t draw = state.random ^ mix64(hash);
  return random_chance(draw, p.real(kQ));
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const auto keys = buffer(p, slice);
  return keys.find(keys.fingerprint(element.hash)) != 0 || guess(p, *slice.state, element.hash);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const auto keys = buffer(p, slice);
  const std::uint64_t print = keys.fingerprint(element.hash);
  if (const std::uint64_t id = keys.find(print)) {
    keys.touch(id);
    return true;
  }
  keys.add(print);
  const bool guessed = guess(p, *slice.state, element.hash);
  next_random(slice.state->random);
  return guessed;
}

bool erase(const Parameters& p, Slice slice, const Element& element) noexcept {
  const auto keys = buffer(p, slice);
  const std::uint64_t id = keys.find(keys.fingerprint(element.hash));
  if (id == 0) return false;
  keys.remove(id);
  return true;
}

using Target = Buffer<SliceState, unsigned char>;
using Source = Buffer<const SliceState, const unsigned char>;

// Keeps the most recent keys of both, by turns from the most recent on, as many as there is room
// for. A key of both keeps its place in `target`. Returns how many of `source` were new.
std::uint64_t merge_recent(const Target& target, const Source& source) noexcept {
  const std::uint64_t own = target.size();
  std::uint64_t all_added = 0, turns = 0, added = 0;
  bool fit = true;
  source.for_each([&](std::uint64_t print) {
    const bool is_new = target.find(print) == 0;
    all_added += is_new;
    fit = fit && std::min(own, turns + 1) + added + is_new <= target.room();
    turns += fit;
    added += fit && is_new;
    return true;
  });
  const std::uint64_t kept = turns < source.size() ? turns : target.room() - added;
  while (target.size() > kept) target.remove_oldest();
  if (turns == 0) return all_added;
  // Starts with the least recent key: each in turn becomes the most recent one.
  std::uint64_t left = target.size(), rank = turns;
  for (; left > turns; --left) target.touch_oldest();
  source.for_each_backwards(turns, [&](std::uint64_t print) {
    if (left >= rank) {
      target.touch_oldest();
      --left;
    }
    --rank;
    if (target.find(print) != 0) return;
    left -= target.size() == target.room() && left > 0;
    target.add(print);
  });
  return all_added;
}

// Clock has no order, so random keys of both are kept.
std::uint64_t merge_any(const Target& target, const Source& source,
                        std::uint64_t& random) noexcept {
  const std::uint64_t own = target.size();
  std::uint64_t added = 0;
  source.for_each([&](std::uint64_t print) {
    added += target.find(print) == 0;
    return true;
  });
  const std::uint64_t all = own + added, excess = all > target.room() ? all - target.room() : 0;
  std::uint64_t skipped =
      excess > 0 ? static_cast<std::uint64_t>(static_cast<unsigned __int128>(excess) * added / all)
                 : 0;
  for (std::uint64_t i = skipped; i < excess; ++i) target.remove_any(random);
  std::uint64_t left = added;
  source.for_each([&](std::uint64_t print) {
    if (target.find(print) != 0) return true;
    const bool skip = skipped > 0 && random_below(random, std::max(left, skipped)) < skipped;
    left -= left > 0;
    if (skip)
      --skipped;
    else if (target.size() < target.room())
      target.add(print);
    return true;
  });
  return added;
}

void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  const Target target = buffer(p, into);
  const Source source = buffer(p, from);
  if (source.size() == 0) return;
  const std::uint64_t added = target.keeps_order() ? merge_recent(target, source)
                                                   : merge_any(target, source, into.state->random);
  into.state->inserted_new = merged_new_by_entries(into.state->inserted_new,
                                                   from.state->inserted_new, added, source.size());
}

// Takes over the keys of another size. If hashes are not kept, all keys of a slice come into one,
// because a key can be found in its own slice only.
void move(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
          std::uint32_t index) noexcept {
  const Target target = buffer(p, into);
  const Source source = buffer(old, from);
  source.for_each_by_age([&](std::uint64_t print, bool seen) {
    if (source.keeps_hashes() && slice_of(p, print) != index) return;
    target.add(print);
    if (!seen) target.note_unseen(print);
  });
}

bool check(const Parameters& p, ConstSlice slice) noexcept { return buffer(p, slice).check(); }

// A key is counted as distinct when it is added; fplru calls a share q of those repeats.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const double count = to_real(buffer(p, slice).size()), q = q_of(p);
  const double distinct = q < 1 ? to_real(slice.state->inserted_new) / (1 - q)
                                : std::numeric_limits<double>::quiet_NaN();
  return {count / entries(p), rate(p, count), distinct};
}

double fpr_bound(const Parameters& p) noexcept { return rate(p, entries(p)); }

// A key is forgotten when n others were seen in its slice since; on a stream of distinct keys, all
// gap - 1 rows between are others. Clock comes close to this.
double fnr_at(const Parameters& p, double gap) noexcept {
  const double between = std::max(0.0, gap - 1), n = entries(p);
  if (between < n) return 0;
  const double forgotten =
      p.slices == 1 ? 1 : boost::math::ibeta(n, between - n + 1, 1.0 / p.slices, MathPolicy());
  return forgotten * (1 - q_of(p));
}

// With a gap, that many keys lie between a key and its repeat. There is no model of Clock near the
// end of its reach.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  const auto held = [&](double n) { return exact_store_model::held(n, entries(p), p.slices); };
  const auto rate_after = [&](double n) { return rate(p, held(n) / p.slices); };
  double fnr = std::numeric_limits<double>::quiet_NaN();
  if (stream.gap() == 0)
    fnr = exact_store_model::mean_fnr(stream, held, rate_after);
  else if (stream.repeats() > 0 && p.integer(kPolicy) == lru)
    fnr = fnr_at(p, stream.gap());
  return {exact_store_model::mean_fpr(stream.distinct(), rate_after), fnr};
}

constexpr FilterOps row(Kind kind, const char* name, const char* summary,
                        std::span<const OptionSpec> options) noexcept {
  return {
      .kind = kind,
      .name = name,
      .summary = summary,
      .options = options,
      .keeps_fpr_forever = true,
      .learns_from_repeats = always,
      .derive = derive,
      .test = test,
      .insert = insert,
      .erase = erase,
      .merge = merge,
      .check = check,
      .estimate = estimate,
      .fpr_bound = fpr_bound,
      .fnr_at = fnr_at,
      .predict = predict,
      .resize = {
          .sized = words(kQ, kEntries),
          .places = [](const Parameters&) noexcept { return std::uint64_t{1}; },
          .undivided = [](const Parameters& p) noexcept { return p.integer(kEntryBits) < 64; },
          .move = move,
      },
  };
}

}  // namespace

const FilterOps lru_ops =
    row(Kind::lru, "lru", "the most recent keys, exactly: practically no false positives",
        std::span(kOptions).first<std::size(kOptions) - 1>());

const FilterOps fplru_ops =
    row(Kind::fplru, "fplru",
        "the most recent keys, exactly; keys not found are called repeats with probability q",
        kOptions);

}  // namespace streamfilter
