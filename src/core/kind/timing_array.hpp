// The timers of a slice of kind timer: arrays in one filter or, with `grow`, in several.
// timing_bloom.cpp explains them.
#pragma once

#include "core/bits/packed_words.hpp"
#include "core/kind/kind_tools.hpp"
#include "core/kind/timing_options.hpp"

namespace streamfilter::timing {

constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 62;

template <typename State>
struct Counters {
  using Word = std::conditional_t<std::is_const_v<State>, const std::uint64_t, std::uint64_t>;
  explicit Counters(State& state) noexcept
      : clock(state.own[0]),
        oldest(state.own[1]),
        open(state.own[2]),
        rows(state.own[3]),
        sharing(state.own[4]) {}

  Word& clock;    // present tick
  Word& oldest;   // index of the oldest filter
  Word& open;     // number of filters, from the oldest on
  Word& rows;     // accepted rows, if the window counts rows
  Word& sharing;  // 0; for a shared stream, 1 + the first filter that it fills
};

// Reads and writes the timers of one filter. A code c > 0 means a timer that ends at a tick
// congruent to c - 1 modulo C.
template <typename Byte>
class Timers {
 public:
  using State = std::conditional_t<std::is_const_v<Byte>, const FilterState, FilterState>;

  Timers(const Parameters& p, Byte* bytes, std::uint64_t clock) noexcept
      : state_(reinterpret_cast<State*>(bytes)),
        words_(bytes + sizeof(FilterState), 0, static_cast<unsigned>(p.integer(kTimerBits))),
        m_(p.integer(kCells)),
        ticks_(p.integer(kTicks)),
        codes_((std::uint64_t{1} << p.integer(kTimerBits)) - 1),
        present_(clock % codes_) {}

  State& state() const noexcept { return *state_; }
  std::uint64_t size() const noexcept { return m_; }
  std::uint64_t code(std::uint64_t i) const noexcept { return words_.get(i); }

  // The ticks until a timer ends, 1 to w; 0 or less for one that has ended and was not swept.
  std::int64_t left(std::uint64_t code) const noexcept {
    std::uint64_t ahead = code - 1 + codes_ - present_;
    if (ahead >= codes_) ahead -= codes_;
    return static_cast<std::int64_t>(ahead) -
           static_cast<std::int64_t>(ahead > ticks_ ? codes_ : 0);
  }

  bool runs(std::uint64_t i, std::int64_t after) const noexcept {
    const std::uint64_t it = code(i);
    return it != 0 && left(it) > after;
  }

  // Lets timer i end in `ticks` ticks, unless it already ends later.
  void prolong(std::uint64_t i, std::uint64_t ticks) const noexcept {
    const std::uint64_t it = code(i);
    if (it != 0 && left(it) >= static_cast<std::int64_t>(ticks)) return;
    state_->non_zero += it == 0;
    words_.set(i, 1 + (present_ + ticks) % codes_);
  }

  // Lets timer i end in `ticks` ticks; 0: stops it.
  void set(std::uint64_t i, std::uint64_t ticks) const noexcept {
    words_.set(i, ticks > 0 ? 1 + (present_ + ticks) % codes_ : 0);
  }

  // Sweeps the next `count` timers: clears those that have ended `ticks` from now.
  void sweep(std::uint64_t count, std::int64_t ticks) const noexcept {
    std::uint64_t at = state_->swept;
    for (; count > 0; --count) {
      if (const std::uint64_t it = code(at); it != 0 && left(it) <= ticks) {
        words_.set(at, 0);
        --state_->non_zero;
      }
      if (++at == m_) at = 0;
    }
    state_->swept = at;
  }

  // The number of timers to sweep while `ticks` pass: 1/s of all for each tick.
  std::uint64_t due(std::uint64_t ticks) const noexcept {
    return ticks >= spare() ? m_ : std::min(m_, ticks * per_tick());
  }

  // True if timer i, which has ended, is swept before its code could mean the future.
  bool is_swept_in_time(std::uint64_t i) const noexcept {
    const std::uint64_t since = static_cast<std::uint64_t>(-left(code(i)));
    const std::uint64_t ahead = i >= state_->swept ? i - state_->swept : i + m_ - state_->swept;
    return ahead / per_tick() + since < spare();
  }

 private:
  std::uint64_t spare() const noexcept { return codes_ - ticks_; }
  std::uint64_t per_tick() const noexcept { return (m_ + spare() - 1) / spare(); }

  State* state_;
  PackedWords<Byte> words_;
  std::uint64_t m_, ticks_, codes_, present_;
};

inline std::uint64_t tick(const Parameters& p, std::int64_t time) noexcept {
  return tick_at(time, p.integer(kTickLength));
}

template <typename State, typename Byte>
class Filters : public Counters<State> {
 public:
  using Counters<State>::clock;
  using Counters<State>::oldest;
  using Counters<State>::open;
  using Counters<State>::rows;
  using Counters<State>::sharing;

  Filters(const Parameters& p, BasicSlice<State, Byte> slice) noexcept
      : Counters<State>(*slice.state), p_(p), body_(slice.body()), bytes_(filter_bytes(p)) {}

  // Filter i by age, the oldest first.
  Timers<Byte> filter(std::uint64_t i) const noexcept { return filter_at(i, clock); }
  Timers<Byte> filter_at(std::uint64_t i, std::uint64_t now) const noexcept {
    return {p_, at((oldest + i) % most()), now};
  }
  Timers<Byte> newest() const noexcept { return filter(open - 1); }

  // The tick of an element; the present for an element without a time.
  std::uint64_t tick_of(const Element& element) const noexcept {
    return counts_rows(p_) || !is_finite(element.time) ? clock : tick(p_, element.time);
  }

  // Definition 4, for an event at tick `then`. A key's own timers began no later than any that now
  // runs for it: if all end late enough to have begun within the window before the event, its own
  // may have. None began further than the window behind the event, unless that is late.
  bool has(std::uint64_t hash, std::uint64_t then) const noexcept {
    const std::uint64_t late = late_ticks(p_), after = then >= clock ? then - clock + late
                                                       : clock - then <= late
                                                           ? late - (clock - then)
                                                           : 0;
    if (after >= p_.integer(kTicks)) return false;
    for (std::uint64_t i = open; i > 0; --i)
      if (has(filter(i - 1), hash, static_cast<std::int64_t>(after))) return true;
    return false;
  }

  void advance(std::uint64_t now) const noexcept {
    if (now <= clock) return;
    for (std::uint64_t i = 0; i < open; ++i) {
      const Timers<Byte> timers = filter(i);
      if (timers.state().last_end <= now)
        clear(timers);
      else
        timers.sweep(timers.due(now - clock), static_cast<std::int64_t>(now - clock));
    }
    clock = now;
    while (open > 1 && sharing == 0 && filter(0).state().non_zero == 0) {
      clear(filter(0));
      oldest = (oldest + 1) % most();
      --open;
    }
  }

  // Remembers a key for `ticks` ticks.
  void add(std::uint64_t hash, std::uint64_t ticks) const noexcept {
    if (sharing == 0) make_room();
    const Timers<Byte> timers = sharing == 0 ? newest() : filter(shared_filter(hash));
    for (unsigned i = 0; i < own_k(p_); ++i)
      timers.prolong(position(hash, i, timers.size()), ticks);
    if (timers.state().keys < kMaxRows) ++timers.state().keys;
    timers.state().last_end = std::max(timers.state().last_end, clock + ticks);
  }

  // Prepares copies of this filter to share a stream: they fill all free filters, or the newest.
  void share() const noexcept {
    if (p_.integer(kGrow) == none || sharing != 0) return;
    sharing = 1 + std::min(open, most() - 1);
    open = most();
  }

  // True if no timer runs.
  bool is_idle() const noexcept {
    for (std::uint64_t i = 0; i < open; ++i)
      if (filter(i).state().non_zero != 0) return false;
    return true;
  }

  // Opens an older filter that is still empty.
  void open_older() const noexcept {
    oldest = (oldest + most() - 1) % most();
    ++open;
  }

  std::uint64_t most() const noexcept { return p_.integer(kFilters); }

  // True if these bytes can be the state of a slice.
  bool check(std::uint64_t body_bytes) const noexcept {
    const std::uint64_t tick = p_.integer(kTickLength);
    if (open > most() || oldest >= most() || rows > kMaxRows) return false;
    if (counts_rows(p_) ? clock != rows / tick : rows != 0 || clock > last_tick(tick)) return false;
    if (sharing != 0 && (p_.integer(kGrow) == none || sharing > most() || open != most()))
      return false;
    for (std::uint64_t i = 0; i < open; ++i)
      if (!check(filter(i))) return false;
    for (std::uint64_t i = open; i < most(); ++i)
      if (const Byte* one = at((oldest + i) % most()); !is_zero(one, one + bytes_)) return false;
    return is_zero(at(most()), body_ + body_bytes);
  }

 private:
  Byte* at(std::uint64_t index) const noexcept { return body_ + index * bytes_; }

  std::uint64_t shared_filter(std::uint64_t hash) const noexcept {
    const std::uint64_t first = sharing - 1;
    return first + scale(mix64(hash + kGoldenRatio), most() - first);
  }

  // With equal timers (§4), `equal_timers` of them must have been set together.
  bool has(const Timers<Byte>& timers, std::uint64_t hash, std::int64_t after) const noexcept {
    const unsigned k = own_k(p_);
    const unsigned wanted = static_cast<unsigned>(p_.integer(kEqual));
    std::uint64_t codes[kMaxHashes];
    for (unsigned i = 0; i < k; ++i) {
      codes[i] = timers.code(position(hash, i, timers.size()));
      if (codes[i] == 0 || timers.left(codes[i]) <= after) return false;
    }
    if (wanted == 0) return true;
    for (unsigned i = 0; i + wanted <= k; ++i)
      if (std::count(codes + i, codes + k, codes[i]) >= static_cast<std::ptrdiff_t>(wanted))
        return true;
    return false;
  }

  void clear(const Timers<Byte>& timers) const noexcept {
    FilterState& state = timers.state();
    std::memset(static_cast<void*>(&state), 0, state.non_zero > 0 ? bytes_ : sizeof state);
  }

  // Opens another filter if the newest has reached its limit and memory has room for one more.
  void make_room() const noexcept {
    if (open == 0) open = 1;
    if (p_.integer(kGrow) == none || open == most()) return;
    const Timers<Byte> timers = newest();
    FilterState& state = timers.state();
    const std::uint64_t limit = p_.integer(kLimit);
    if (p_.integer(kGrow) == cardinality) {
      open += state.keys >= limit;
      return;
    }
    // The limit may count ended timers: sweep them all, but at most once for each tick.
    if (state.non_zero >= limit && state.all_swept != clock) {
      timers.sweep(timers.size(), 0);
      state.all_swept = clock;
    }
    open += state.non_zero >= limit;
  }

  bool check(const Timers<Byte>& timers) const noexcept {
    const FilterState& state = timers.state();
    if (state.swept >= timers.size() || state.all_swept > clock ||
        state.last_end > clock + p_.integer(kTicks) || state.keys > kMaxRows)
      return false;
    std::uint64_t non_zero = 0;
    for (std::uint64_t i = 0; i < timers.size(); ++i) {
      const std::uint64_t it = timers.code(i);
      if (it == 0) continue;
      ++non_zero;
      const std::int64_t left = timers.left(it);
      if (left > 0 ? clock + static_cast<std::uint64_t>(left) > state.last_end
                   : !timers.is_swept_in_time(i))
        return false;
    }
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&state) + sizeof state;
    for (std::uint64_t bit = timers.size() * p_.integer(kTimerBits);
         bit < (bytes_ - sizeof state) * 8; ++bit)
      if (bytes[bit / 8] >> bit % 8 & 1) return false;
    return non_zero == state.non_zero;
  }

  const Parameters& p_;
  Byte* body_;
  std::uint64_t bytes_;  // of one filter
};

template <typename State, typename Byte>
Filters<State, Byte> filters(const Parameters& p, BasicSlice<State, Byte> slice) noexcept {
  return {p, slice};
}

}  // namespace streamfilter::timing
