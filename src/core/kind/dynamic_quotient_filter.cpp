// Dynamic SQF (Dutta et al. 2013 §5.1): rows are chains of buckets from one pool, so that rows grow
// where the keys go. When the pool is used up, the least recently accessed row that has buckets
// gives up a random one. All of this counts as memory: each row has the head of its chain and its
// two neighbours in the order of access, each bucket has a link and the signature.

#include "core/kind/kind_list.hpp"
#include "core/kind/quotient_table.hpp"

namespace streamfilter {
namespace {

using namespace quotient;

constexpr unsigned kLinkBits = 32;
constexpr unsigned kRowBits = 3 * kLinkBits;

// A link is the number of the next bucket. In the last bucket of a chain it is this bit and the
// number of the row: chains that shared a bucket could not both end in their own row, so `check`
// can prove that chains are separate. Elsewhere numbers are stored plus one, and 0 stands for none.
constexpr std::uint32_t kEnd = 0x80000000;
constexpr std::uint32_t kFree = kEnd - 1;  // instead of the row, in buckets that were given back
constexpr std::uint64_t kMaxInSlice = kFree;

// The longest average chain that is derived from options.
constexpr double kMaxDerived = 16;

constexpr OptionSpec kOptions[] = {
    kROption,
    kRPrimeOption,
    integer_option(kBuckets, "buckets", 1, 1e15, Share::rounded_up),
    integer_option(kP, kPOption.name, kPOption.low, kPOption.high, Share::follows),  // rows and r
    kOmegaOption,
    kFingerprintOption,
    integer_option(kRows, "rows", 1, 1e15, Share::rounded_up),
};

auto& has_evicted(auto& state) noexcept { return state.own[4]; }  // 0 or 1

// The rest of SliceState::own.
struct Ends {
  std::uint32_t free;    // first bucket that was given back
  std::uint32_t taken;   // how many buckets were ever taken, always the first ones
  std::uint32_t oldest;  // least recently accessed row that has buckets
  std::uint32_t newest;
};
static_assert(sizeof(Ends) == 2 * sizeof(std::uint64_t));

Ends load_ends(const SliceState& state) noexcept {
  Ends ends;
  std::memcpy(&ends, &state.own[2], sizeof ends);
  return ends;
}

void save_ends(SliceState& state, const Ends& ends) noexcept {
  std::memcpy(&state.own[2], &ends, sizeof ends);
}

// The body of a slice: first all rows, then all buckets.
template <typename Byte>
class Body {
 public:
  Body(const Parameters& p, Byte* body, std::uint64_t bytes) noexcept
      : fields_(body, bytes),
        width_(Signatures(p).width()),
        buckets_start_(p.integer(kSliceRows) * kRowBits) {}

  std::uint32_t head(std::uint64_t row) const noexcept { return row_word(row, 0); }
  std::uint32_t older(std::uint64_t row) const noexcept { return row_word(row, 1); }
  std::uint32_t newer(std::uint64_t row) const noexcept { return row_word(row, 2); }
  std::uint32_t link(std::uint64_t bucket) const noexcept {
    return static_cast<std::uint32_t>(fields_.get(bucket_bit(bucket), kLinkBits));
  }
  std::uint64_t code(std::uint64_t bucket) const noexcept {
    return fields_.get(bucket_bit(bucket) + kLinkBits, width_);
  }

  void set_head(std::uint64_t row, std::uint64_t value) const noexcept { set_row(row, 0, value); }
  void set_older(std::uint64_t row, std::uint64_t value) const noexcept { set_row(row, 1, value); }
  void set_newer(std::uint64_t row, std::uint64_t value) const noexcept { set_row(row, 2, value); }
  void set_link(std::uint64_t bucket, std::uint64_t value) const noexcept {
    fields_.set(bucket_bit(bucket), kLinkBits, value);
  }
  void set_code(std::uint64_t bucket, std::uint64_t code) const noexcept {
    fields_.set(bucket_bit(bucket) + kLinkBits, width_, code);
  }

  bool is_zero_from(std::uint64_t bucket) const noexcept {
    return fields_.is_zero_from(bucket_bit(bucket));
  }

 private:
  std::uint64_t bucket_bit(std::uint64_t bucket) const noexcept {
    return buckets_start_ + bucket * (kLinkBits + width_);
  }
  std::uint32_t row_word(std::uint64_t row, unsigned i) const noexcept {
    return static_cast<std::uint32_t>(fields_.get(row * kRowBits + i * kLinkBits, kLinkBits));
  }
  void set_row(std::uint64_t row, unsigned i, std::uint64_t value) const noexcept {
    fields_.set(row * kRowBits + i * kLinkBits, kLinkBits, value);
  }

  PackedFields<Byte> fields_;
  unsigned width_;
  std::uint64_t buckets_start_;
};

// Is the code in this row's chain?
template <typename Byte>
bool contains(const Body<Byte>& body, std::uint64_t row, std::uint64_t code) noexcept {
  const std::uint32_t head = body.head(row);
  if (head == 0) return false;
  for (std::uint32_t bucket = head - 1;; bucket = body.link(bucket)) {
    if (bucket & kEnd) return false;
    if (body.code(bucket) == code) return true;
  }
}

// A slice at work.
class Chains {
 public:
  Chains(const Parameters& p, Slice slice) noexcept
      : body_(p, slice.body(), slice.bytes),
        state_(*slice.state),
        signatures_(p),
        buckets_(p.integer(kSliceBuckets)),
        ends_(load_ends(state_)) {}

  Chains(const Chains&) = delete;
  ~Chains() { save_ends(state_, ends_); }

  // Finds or stores a code, and makes its row the most recently accessed one.
  bool insert(const RowEntry& entry) noexcept {
    const bool found = contains(body_, entry.row, entry.code);
    if (body_.head(entry.row) != 0) {
      leave(entry.row);
      enter(entry.row);
    }
    if (!found) add(entry);
    return found;
  }

  bool erase(const RowEntry& entry) noexcept {
    const std::uint32_t head = body_.head(entry.row);
    if (head == 0) return false;
    std::uint32_t before = kEnd;
    for (std::uint32_t bucket = head - 1; !(bucket & kEnd); bucket = body_.link(bucket)) {
      if (body_.code(bucket) == entry.code) {
        take_out(entry.row, before, bucket);
        give_back(bucket);
        return true;
      }
      before = bucket;
    }
    return false;
  }

  // For merging: moves the least recently accessed row to the other end.
  void renew_oldest() noexcept {
    const std::uint64_t row = ends_.oldest - 1;
    leave(row);
    enter(row);
  }

  // Stores a code that is not there. A row in use keeps its place in the order of access.
  void store(const RowEntry& entry) noexcept { add(entry); }

  // Gives back the bucket that an eviction would take.
  void give_back_oldest() noexcept { give_back(evict()); }

  bool has(const RowEntry& entry) const noexcept { return contains(body_, entry.row, entry.code); }

  std::uint64_t rows_in_use() const noexcept {
    std::uint64_t count = 0;
    for (std::uint32_t row = ends_.oldest; row != 0; row = body_.newer(row - 1)) ++count;
    return count;
  }

 private:
  void give_back(std::uint32_t bucket) noexcept {
    body_.set_link(bucket, ends_.free != 0 ? ends_.free - 1 : kEnd | kFree);
    ends_.free = bucket + 1;
  }

  void add(const RowEntry& entry) noexcept {
    const std::uint32_t bucket = new_bucket();
    const std::uint32_t head = body_.head(entry.row);
    if (head == 0) enter(entry.row);
    body_.set_code(bucket, entry.code);
    body_.set_link(bucket, head != 0 ? head - 1 : kEnd | entry.row);
    body_.set_head(entry.row, std::uint64_t{bucket} + 1);
    ++used(state_);
    weight(state_) += signatures_.weight(entry.code);
  }

  std::uint32_t new_bucket() noexcept {
    if (ends_.free != 0) {
      const std::uint32_t bucket = ends_.free - 1, next = body_.link(bucket);
      ends_.free = next & kEnd ? 0 : next + 1;
      return bucket;
    }
    if (ends_.taken < buckets_) return ends_.taken++;
    return evict();
  }

  // Takes a random bucket of the oldest row.
  std::uint32_t evict() noexcept {
    const std::uint64_t row = ends_.oldest - 1;
    const std::uint32_t head = body_.head(row) - 1;
    std::uint64_t length = 0;
    for (std::uint32_t bucket = head; !(bucket & kEnd); bucket = body_.link(bucket)) ++length;
    std::uint32_t before = kEnd, victim = head;
    for (std::uint64_t i = random_below(state_.random, length); i > 0; --i) {
      before = victim;
      victim = body_.link(victim);
    }
    take_out(row, before, victim);
    has_evicted(state_) = 1;
    return victim;
  }

  // Takes a bucket out of its row. `before` links to the bucket; kEnd: it is the first.
  void take_out(std::uint64_t row, std::uint32_t before, std::uint32_t bucket) noexcept {
    const std::uint32_t next = body_.link(bucket);
    if (before != kEnd) {
      body_.set_link(before, next);
    } else if (next & kEnd) {
      body_.set_head(row, 0);
      leave(row);
    } else {
      body_.set_head(row, std::uint64_t{next} + 1);
    }
    weight(state_) -= signatures_.weight(body_.code(bucket));
    --used(state_);
    body_.set_code(bucket, 0);
  }

  // Enter a row into the order of access, or take it out.
  void enter(std::uint64_t row) noexcept {
    body_.set_older(row, ends_.newest);
    if (ends_.newest != 0)
      body_.set_newer(ends_.newest - 1, row + 1);
    else
      ends_.oldest = static_cast<std::uint32_t>(row + 1);
    ends_.newest = static_cast<std::uint32_t>(row + 1);
  }

  void leave(std::uint64_t row) noexcept {
    const std::uint32_t older = body_.older(row), newer = body_.newer(row);
    if (older != 0)
      body_.set_newer(older - 1, newer);
    else
      ends_.oldest = newer;
    if (newer != 0)
      body_.set_older(newer - 1, older);
    else
      ends_.newest = older;
    body_.set_older(row, 0);
    body_.set_newer(row, 0);
  }

  Body<unsigned char> body_;
  SliceState& state_;
  Signatures signatures_;
  std::uint64_t buckets_;
  Ends ends_;
};

// Rows and buckets share the memory, with 4 buckets to a row unless options say otherwise. (Longer
// chains would save heads, but each bucket of a chain is a cache miss.)
bool appraise(const Definition& definition, QuotientShape& shape) noexcept {
  const Parameters& p = definition.parameters;
  const Signatures signatures(shape.r, shape.r_prime);
  const std::uint64_t bits = body_bytes(p) * 8, bucket_bits = kLinkBits + signatures.width();
  const auto per_slice = [&](unsigned word) {
    return p.integer(word) / p.slices + (p.integer(word) % p.slices != 0);
  };
  std::uint64_t fit = bits / (kRowBits + kDefaultBuckets * bucket_bits);
  if (definition.has(kRows))
    fit = per_slice(kRows);
  else if (definition.has(kBuckets))
    fit = std::max<std::uint64_t>(1, per_slice(kBuckets) / kDefaultBuckets);
  else if (definition.has(kP) && definition.has(kR))
    fit = bits / kRowBits;
  fit = std::min({std::max<std::uint64_t>(fit, 1), bits / kRowBits, kMaxInSlice});
  if (!set_rows(definition, fit, shape, definition.has(kRows))) return false;
  if (definition.has(kRows) && shape.rows != per_slice(kRows)) return false;
  const std::uint64_t room = std::min((bits - shape.rows * kRowBits) / bucket_bits, kMaxInSlice);
  shape.buckets = definition.has(kBuckets) ? per_slice(kBuckets) : room;
  if (shape.buckets == 0 || shape.buckets > room) return false;

  const double rows = to_real(shape.rows) * p.slices, buckets = to_real(shape.buckets) * p.slices;
  if (buckets > kMaxDerived * rows && !definition.has(kR) && !definition.has(kRows)) return false;
  if (is_integer(definition)) {
    shape.loss = shape.r;
    shape.bound = signatures.unselected() == 1 ? 0 : 1;
    return true;
  }
  const double keys = to_real(p.keys) / p.slices;  // of one slice, at most:
  const bool all_fit = p.keys > 0 && keys + 6 * std::sqrt(keys) < to_real(shape.buckets);
  shape.loss = all_fit ? 0 : 1 / buckets;
  shape.bound = quotient_model::dynamic_fpr_bound(shape.r_prime, signatures.unselected(),
                                                  to_real(p.keys), rows, buckets);
  return true;
}

bool derive(Definition& definition, Problem& problem) noexcept {
  QuotientShape shape{};
  if (!quotient::derive(definition, appraise, shape, problem)) return false;
  Parameters& p = definition.parameters;
  p.set_integer(kSliceBuckets, shape.buckets);
  if (!definition.has(kRows)) p.set_integer(kRows, shape.rows * p.slices);
  if (!definition.has(kBuckets)) p.set_integer(kBuckets, shape.buckets * p.slices);
  return true;
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const RowEntry entry = locate(p, element);
  return contains(Body(p, slice.body(), slice.bytes), entry.row, entry.code);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  return Chains(p, slice).insert(locate(p, element));
}

// Another key of the same row and signature is forgotten as well.
bool erase(const Parameters& p, Slice slice, const Element& element) noexcept {
  return Chains(p, slice).erase(locate(p, element));
}

// Calls `visit_row` with every row of a slice that is in use, the least recently accessed first.
template <typename Visit>
void for_each_row(const Body<const unsigned char>& body, const SliceState& state,
                  Visit visit_row) noexcept {
  for (std::uint32_t row = load_ends(state).oldest; row != 0; row = body.newer(row - 1))
    visit_row(row - 1);
}

template <typename Visit>
void for_each_code(const Body<const unsigned char>& body, std::uint32_t row, Visit visit) noexcept {
  for (std::uint32_t bucket = body.head(row) - 1; !(bucket & kEnd); bucket = body.link(bucket))
    visit(RowEntry{row, body.code(bucket)});
}

// If the pool is too small for both filters, each gives up the same part of what the other lacks,
// from its least recently accessed rows. Then the rows of both enter by turns, least recent first;
// a row that both have keeps its place in `into`.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  const Body source(p, from.body(), from.bytes);
  SliceState& state = *into.state;
  const std::uint64_t own = used(state), pool = p.integer(kSliceBuckets);
  std::uint64_t added = 0, others = 0;
  {
    Chains target(p, into);
    for_each_row(source, *from.state, [&](std::uint32_t row) {
      ++others;
      for_each_code(source, row, [&](const RowEntry& it) { added += !target.has(it); });
    });
    const std::uint64_t excess = own + added > pool ? own + added - pool : 0;
    std::uint64_t skipped =
        excess > 0 ? static_cast<std::uint64_t>(static_cast<unsigned __int128>(excess) * added /
                                                (own + added))
                   : 0;
    for (std::uint64_t i = skipped; i < excess; ++i) target.give_back_oldest();
    has_evicted(state) |= excess > 0;
    const std::uint64_t rows = target.rows_in_use();
    std::uint64_t met = 0, turns = 0;
    for_each_row(source, *from.state, [&](std::uint32_t row) {
      for (++met; turns < rows && turns * others < met * rows; ++turns) target.renew_oldest();
      for_each_code(source, row, [&](const RowEntry& it) {
        if (target.has(it)) return;
        skipped > 0 ? void(--skipped) : target.store(it);
      });
    });
  }
  state.inserted_new =
      merged_new_by_entries(state.inserted_new, from.state->inserted_new, added, used(*from.state));
  has_evicted(state) |= has_evicted(*from.state);
}

// Every bucket ever taken is in exactly one chain or was given back; the rows that have buckets,
// and no others, are in the order of access. Each walk is bounded, whatever the bytes.
bool check(const Parameters& p, ConstSlice slice) noexcept {
  const Body body(p, slice.body(), slice.bytes);
  const Signatures signatures(p);
  const std::uint64_t rows = p.integer(kSliceRows);
  const Ends ends = load_ends(*slice.state);
  if (ends.taken > p.integer(kSliceBuckets) || has_evicted(*slice.state) > 1) return false;

  std::uint64_t in_chains = 0, weights = 0, rows_in_use = 0;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint32_t head = body.head(row);
    if (head == 0) {
      if (body.older(row) != 0 || body.newer(row) != 0) return false;
      continue;
    }
    ++rows_in_use;
    std::uint32_t bucket = head - 1;
    if (bucket >= ends.taken) return false;
    for (; !(bucket & kEnd); bucket = body.link(bucket)) {
      if (bucket >= ends.taken || ++in_chains > ends.taken) return false;
      const std::uint64_t code = body.code(bucket);
      if (code == 0 || code > signatures.count()) return false;
      weights += signatures.weight(code);
    }
    if (bucket != (kEnd | row)) return false;
  }
  if (in_chains != used(*slice.state) || weights != weight(*slice.state)) return false;

  std::uint64_t given_back = 0;
  if (ends.free != 0) {
    std::uint32_t bucket = ends.free - 1;
    if (bucket >= ends.taken) return false;
    for (; !(bucket & kEnd); bucket = body.link(bucket))
      if (bucket >= ends.taken || body.code(bucket) != 0 || ++given_back > ends.taken) return false;
    if (bucket != (kEnd | kFree)) return false;
  }
  if (in_chains + given_back != ends.taken || !body.is_zero_from(ends.taken)) return false;

  // If all neighbours agree with each other, there is no cycle.
  std::uint32_t older = 0;
  for (std::uint32_t row = ends.oldest; row != 0; row = body.newer(row - 1)) {
    if (row > rows || rows_in_use-- == 0) return false;
    if (body.head(row - 1) == 0 || body.older(row - 1) != older) return false;
    older = row;
  }
  return rows_in_use == 0 && older == ends.newest;
}

Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const SliceState& state = *slice.state;
  return {to_real(used(state)) / to_real(p.integer(kSliceBuckets)),
          fpr_now(p, used(state), weight(state)),
          has_evicted(state) ? std::numeric_limits<double>::quiet_NaN() : distinct(p, used(state))};
}

double all(const Parameters& p, unsigned word) noexcept {
  return to_real(p.integer(word)) * p.slices;
}

// Integer keys: 0 if each has a signature of its own. Otherwise a stream could bring about any
// rate.
double fpr_bound(const Parameters& p) noexcept {
  if (p.key_shift != 0) return is_injective(p) ? 0 : 1;
  const Signatures signatures(p);
  return quotient_model::dynamic_fpr_bound(signatures.selected(), signatures.unselected(),
                                           to_real(p.keys), all(p, kSliceRows),
                                           all(p, kSliceBuckets));
}

// In a slice, the number of keys that come in the gap varies, and so does the lifetime of a row: by
// how many buckets the rows have that it is to be the oldest of.
double fnr_at(const Parameters& p, double gap) noexcept {
  const Signatures signatures(p);
  const double rows = to_real(p.integer(kSliceRows)), buckets = to_real(p.integer(kSliceBuckets)),
               mean = gap / p.slices,
               deviation =
                   std::sqrt(mean * (1 - 1. / p.slices) + rows * buckets / (rows + buckets));
  double sum = 0, weights = 0;
  for (double z = -3; z <= 3; z += 0.125) {
    const double weight = std::exp(-z * z / 2);
    sum += weight * quotient_model::dynamic_fnr(mean + z * deviation, signatures.selected(),
                                                signatures.unselected(), rows, buckets);
    weights += weight;
  }
  return sum / weights;
}

// Has a model only while all keys fit. Otherwise repeats keep the rows of their keys from being
// idle, and these rows fill with keys that never come again.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  if (p.key_shift != 0) return kNoPrediction;
  const Signatures signatures(p);
  const double rows = all(p, kSliceRows), buckets = all(p, kSliceBuckets);
  const auto held = [&](double n) {
    return exact_store_model::held(n, buckets / p.slices, p.slices);
  };
  if (stream.gap() > 0 && held(stream.distinct()) < stream.distinct() * (1 - 1e-9))
    return kNoPrediction;
  const auto rate = [&](double n) {
    return n > 0 ? quotient_model::dynamic_fpr_bound(signatures.selected(), signatures.unselected(),
                                                     n, rows, buckets)
                 : 0;
  };
  return {exact_store_model::mean_fpr(stream.distinct(), rate),
          exact_store_model::mean_fnr(stream, held, rate)};
}

}  // namespace

const FilterOps dsqf_ops = {
    .kind = Kind::dsqf,
    .name = "dsqf",
    .summary =
        "dynamic Streaming Quotient Filter: rows grow where the stream goes, idle rows are "
        "forgotten",
    .options = kOptions,
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
    .load = load,
    .rate_at = rate_at,
    .fnr_at = fnr_at,
    .predict = predict,
};

}  // namespace streamfilter
