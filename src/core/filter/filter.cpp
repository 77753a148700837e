#include "core/filter/filter.hpp"

namespace streamfilter {
// The element as one of its slices sees it.
static Element at_probe(const Element& element, const KeyProbe& probe) noexcept {
  return {probe.hash, element.importance, element.time};
}

// Keys prefetched at once, some cache lines each: as many as a core can wait for.
constexpr std::size_t kFetchedAtOnce = 16;

static void prefetch_some(const Header* header, const Element* elements, const bool* has_key,
                          std::size_t count) noexcept {
  Prefetches prefetches;
  for (std::size_t i = 0; i < std::min(count, kFetchedAtOnce); ++i)
    if (has_key[i]) prefetch(header, elements[i], prefetches);
  prefetches.start();
}

void format_header(Header* header, const Parameters& parameters) noexcept {
  std::memset(static_cast<void*>(header), 0, sizeof *header);
  header->magic = kMagic;
  header->version = kFormatVersion;
  header->parameters = parameters;
}

static void start_slice(const Parameters& parameters, Slice slice, std::uint32_t index) noexcept {
  slice.state->random = mix64(parameters.seed ^ (index + 1) * kGoldenRatio);
  if (const FilterOps* ops = find_ops(parameters.kind); ops->init) ops->init(parameters, slice);
}

void format_slice(const Parameters& parameters, Slice slice, std::uint32_t index) noexcept {
  std::memset(static_cast<void*>(slice.state), 0, parameters.slice_bytes);
  start_slice(parameters, slice, index);
}

void format_zeroes(Header* header, std::uint32_t index) noexcept {
  start_slice(header->parameters, slice_at(header, index), index);
}

void format_slice(Header* header, std::uint32_t index) noexcept {
  format_slice(header->parameters, slice_at(header, index), index);
}

void format(Header* header, const Parameters& parameters) noexcept {
  format_header(header, parameters);
  for (std::uint32_t i = 0; i < parameters.slices; ++i) format_slice(header, i);
}

bool check_version(unsigned version, Problem& problem) noexcept {
  if (version == kFormatVersion) return true;
  if (version < kFormatVersion)
    return problem.set(Error::corrupt, "damaged streamfilter: invalid header");
  problem.set(Error::newer_version, "streamfilter of format version %u cannot be read", version);
  return problem.add_hint("This version of streamfilter reads formats up to %u.", kFormatVersion);
}

bool check_header(const Header& header, Problem& problem) noexcept {
  if (header.magic != kMagic)
    return problem.set(Error::corrupt, "these bytes are not a streamfilter");
  if (!check_version(header.version, problem)) return false;
  std::uint64_t reserved = header.reserved0 | header.reserved1;
  for (const std::uint64_t word : header.reserved) reserved |= word;
  if (reserved != 0) return problem.set(Error::corrupt, "damaged streamfilter: invalid header");
  if (!in_range(header.parameters))
    return problem.set(Error::corrupt, "damaged streamfilter: parameters out of range");

  // Completing the stored parameters must give the same ones, so that no derived number is wrong.
  Definition definition = definition_of(header.parameters);
  Problem ignored;
  if (!complete(definition, ignored) ||
      std::memcmp(&definition.parameters, &header.parameters, sizeof(Parameters)) != 0)
    return problem.set(Error::corrupt, "damaged streamfilter: invalid parameters");
  return true;
}

bool check_slice(const Parameters& parameters, ConstSlice slice, std::uint32_t index,
                 Problem& problem) noexcept {
  const FilterOps* ops = find_ops(parameters.kind);
  if (slice.state->insertions <= kMaxInsertions &&
      slice.state->inserted_new <= slice.state->insertions && ops->check(parameters, slice) &&
      (parameters.k1 > 0 || slice.state->insertions > 0 ||
       !(ops->estimate(parameters, slice).fill > 0)))
    return true;
  return problem.set(Error::corrupt, "damaged streamfilter: invalid state of slice %u", index);
}

bool check(const void* bytes, std::size_t length, Problem& problem) noexcept {
  if (length < sizeof(Header))
    return problem.set(Error::corrupt, "truncated streamfilter: %zu bytes", length);
  const Header* header = static_cast<const Header*>(bytes);
  if (!check_header(*header, problem)) return false;
  const Parameters& parameters = header->parameters;
  if (length != block_bytes(parameters))
    return problem.set(Error::corrupt, "damaged streamfilter: %zu bytes instead of %llu", length,
                       llu(block_bytes(parameters)));

  for (std::uint32_t i = 0; i < parameters.slices; ++i)
    if (!check_slice(parameters, slice_at(header, i), i, problem)) return false;
  if (parameters.k1 > 0 && is_empty(header) && totals(header).estimate.fill > 0)
    return problem.set(Error::corrupt, "damaged streamfilter: bits without keys");
  return true;
}

void prefetch_probes(const Header* header, const Element& element,
                     Prefetches& prefetches) noexcept {
  const Parameters& parameters = header->parameters;
  for (unsigned i = 0; i < probes(parameters); ++i) {
    const KeyProbe probe = probe_of(parameters, element.hash, i);
    find_ops(parameters.kind)
        ->prefetch(parameters, slice_at(header, probe.slice), at_probe(element, probe), prefetches);
  }
}

bool test_probe(const Header* header, const Element& element, const KeyProbe& probe) noexcept {
  const Parameters& parameters = header->parameters;
  return find_ops(parameters.kind)
      ->test(parameters, slice_at(header, probe.slice), at_probe(element, probe));
}

void insert_probe(Header* header, const Element& element, const KeyProbe& probe) noexcept {
  const Parameters& parameters = header->parameters;
  find_ops(parameters.kind)
      ->insert_unconditionally(parameters, slice_at(header, probe.slice), at_probe(element, probe));
}

bool test_probes(const Header* header, const Element& element) noexcept {
  return test(header->parameters, header + 1, element);
}

bool test(const Parameters& parameters, const void* slices, const Element& element) noexcept {
  for (unsigned i = 0; i < probes(parameters); ++i) {
    const KeyProbe probe = probe_of(parameters, element.hash, i);
    if (!find_ops(parameters.kind)
             ->test(parameters, slice_at(parameters, slices, probe.slice),
                    at_probe(element, probe)))
      return false;
  }
  return true;
}

bool insert_probes(Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  const bool seen =
      test_probes(header, element) && !is_late(parameters, element, clock_of(header, element.hash));
  for (unsigned i = 0; i < parameters.k1 && !seen; ++i)
    insert_probe(header, element, probe_of(parameters, element.hash, i));
  count_insertion(header, probe_of(parameters, element.hash, 0).slice, seen);
  return seen;
}

void insert_many(Header* header, const Element* elements, const bool* has_key, std::size_t count,
                 bool* seen) noexcept {
  prefetch_some(header, elements, has_key, count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t next = i + kFetchedAtOnce;
    if (i % kFetchedAtOnce == 0 && next < count)
      prefetch_some(header, elements + next, has_key + next, count - next);
    seen[i] = has_key[i] && insert(header, elements[i]);
  }
}

unsigned ranks_of_bucket(const Parameters& parameters) noexcept {
  const FilterOps* ops = find_ops(parameters.kind);
  return ops->ranks != nullptr ? ops->ranks(parameters) : 0;
}

double buckets_of(const Parameters& parameters) noexcept {
  return find_ops(parameters.kind)->buckets(parameters) * parameters.slices;
}

bool test(const Header* header, const Element& element, unsigned& rank) noexcept {
  const Parameters& parameters = header->parameters;
  rank = kNoRank;
  if (ranks_of_bucket(parameters) == 0) return test(header, element);
  const ConstSlice slice = slice_at(header, slice_of(parameters, element.hash));
  rank = find_ops(parameters.kind)->find_rank(parameters, slice, element);
  return rank != kNoRank;
}

bool promote(Header* header, const Element& element, unsigned& rank) noexcept {
  const Parameters& parameters = header->parameters;
  const FilterOps* ops = find_ops(parameters.kind);
  if (ops->promote == nullptr) {
    const bool seen = test(header, element, rank);
    if (seen) insert(header, element);
    return seen;
  }
  const Slice slice = slice_at(header, slice_of(parameters, element.hash));
  const bool seen = ops->promote(parameters, slice, element, rank);
  if (seen) count_insertion(*slice.state, true);
  return seen;
}

bool inserts_unconditionally(const Parameters& parameters) noexcept {
  return find_ops(parameters.kind)->insert_unconditionally != nullptr && keys_expire(parameters);
}

void insert_new(Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  if (!inserts_unconditionally(parameters)) {
    insert(header, element);
    return;
  }
  for (unsigned i = 0; i < probes(parameters); ++i)
    insert_probe(header, element, probe_of(parameters, element.hash, i));
  count_insertion(header, probe_of(parameters, element.hash, 0).slice, false);
}

bool erase(Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  return find_ops(parameters.kind)
      ->erase(parameters, slice_at(header, slice_of(parameters, element.hash)), element);
}

void merge_slice(Header* into, const Header* from, std::uint32_t index) noexcept {
  merge_slice(into, slice_at(from, index), index);
}

void merge_slice(Header* into, ConstSlice source, std::uint32_t index) noexcept {
  merge_slice_unsettled(into, source, index);
  settle_slice(into, index);
}

void merge_slice_unsettled(Header* into, ConstSlice source, std::uint32_t index) noexcept {
  const Parameters& parameters = into->parameters;
  const Slice target = slice_at(into, index);
  find_ops(parameters.kind)->merge(parameters, target, source);
  target.state->insertions =
      std::min(target.state->insertions + source.state->insertions, kMaxInsertions);
  target.state->inserted_new = std::min(target.state->inserted_new, target.state->insertions);
}

void settle_slice(Header* header, std::uint32_t index) noexcept {
  const Parameters& parameters = header->parameters;
  if (const auto settle = find_ops(parameters.kind)->settle; settle != nullptr)
    settle(parameters, slice_at(header, index));
}

void share_stream(Header* header) noexcept {
  const Parameters& parameters = header->parameters;
  const auto share = find_ops(parameters.kind)->share;
  for (std::uint32_t i = 0; share != nullptr && i < parameters.slices; ++i)
    share(parameters, slice_at(header, i));
}

bool fits_slice(const Parameters& parameters, ConstSlice into, ConstSlice from,
                Problem& problem) noexcept {
  const FilterOps& ops = *find_ops(parameters.kind);
  if (ops.fits == nullptr || ops.fits(parameters, into, from)) return true;
  problem.set(Error::unsupported, "filters of kind %s that have grown cannot be merged", ops.name);
  problem.add_detail("Their false-positive rate would exceed what each of them keeps.");
  return problem.add_hint(
      "Results of streamfilter_agg with one prototype can be merged; or leave out option grow.");
}

bool can_merge(const Header* into, const Header* from, Problem& problem) noexcept {
  if (!mergeable(into->parameters, from->parameters, problem)) return false;
  for (std::uint32_t i = 0; i < into->parameters.slices; ++i)
    if (!fits_slice(into->parameters, slice_at(into, i), slice_at(from, i), problem)) return false;
  return true;
}

bool merge(Header* into, const Header* from, Problem& problem) noexcept {
  if (!can_merge(into, from, problem)) return false;
  for (std::uint32_t i = 0; i < into->parameters.slices; ++i) merge_slice(into, from, i);
  return true;
}

bool is_empty(const Header* header) noexcept {
  for (std::uint32_t i = 0; i < header->parameters.slices; ++i)
    if (slice_at(header, i).state->insertions != 0) return false;
  return true;
}

// A new key is mistaken for another if all its probes are; these lie anywhere in one group.
void add_slice(Totals& totals, const Parameters& parameters, ConstSlice slice) noexcept {
  const Estimate one = find_ops(parameters.kind)->estimate(parameters, slice);
  const std::uint32_t group = slices_of_group(parameters);
  const double k1 = probes(parameters);
  totals.insertions += slice.state->insertions;
  totals.inserted_new += slice.state->inserted_new;
  totals.estimate.fill += one.fill / parameters.slices;
  totals.estimate.distinct += one.distinct / k1;
  totals.probe_fpr += one.fpr / group;
  if (++totals.slices % group != 0) return;
  totals.estimate.fpr += std::pow(totals.probe_fpr, k1) / groups_of(parameters);
  totals.probe_fpr = 0;
}

Totals totals(const Header* header) noexcept {
  Totals sum;
  for (std::uint32_t i = 0; i < header->parameters.slices; ++i)
    add_slice(sum, header->parameters, slice_at(header, i));
  return sum;
}

double distinct_keys(const Header* header, bool& full) noexcept {
  const Parameters& parameters = header->parameters;
  double sum = 0;
  full = false;
  for (std::uint32_t i = 0; i < parameters.slices; ++i) {
    const ConstSlice slice = slice_at(header, i);
    const double keys = ops_of(header).estimate(parameters, slice).distinct / probes(parameters);
    if (std::isinf(keys)) {
      // Each key reported as new has set at least one bit. After a merge keys may have been counted
      // twice, but bits not.
      full = true;
      sum += to_real(std::min<std::uint64_t>(slice.state->inserted_new, slice.bytes * 8));
    } else {
      sum += keys;
    }
  }
  return sum;
}

bool keys_of_both(Header* a, double first, Header* b, double second, double& both,
                  double& error) noexcept {
  const Parameters& p = a->parameters;
  const auto compare = find_ops(p.kind)->compare;
  exa_log_log_model::JointLikelihood likelihood;
  for (std::uint32_t i = 0; i < p.slices; ++i)
    if (compare == nullptr || !compare(p, slice_at(a, i), slice_at(b, i), likelihood)) return false;
  both = likelihood.both(first, second, error);
  return true;
}

bool uses_one_line(const Parameters& parameters, const SliceState& state) noexcept {
  const FilterOps* ops = find_ops(parameters.kind);
  return ops->in_one_line != nullptr && ops->in_one_line(parameters, state);
}

std::uint64_t line_of_key(const Header* header, std::uint64_t hash) noexcept {
  const Parameters& parameters = header->parameters;
  const ConstSlice slice = slice_at(header, slice_of(parameters, hash));
  Prefetches lines;
  find_ops(parameters.kind)->prefetch(parameters, slice, Element{hash}, lines);
  return static_cast<std::uint64_t>(static_cast<const char*>(lines.at(0)) -
                                    reinterpret_cast<const char*>(slice.state));
}

}  // namespace streamfilter
