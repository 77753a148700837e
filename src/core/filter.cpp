#include "streamfilter/core/filter.hpp"

#include <algorithm>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <limits>

#include "streamfilter/core/boost_policy.hpp"

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter {
namespace {

// Counting stops here: merging a filter with itself again and again must not wrap around.
constexpr std::uint64_t kMostArrivals = std::uint64_t{1} << 62;

}  // namespace

void format_header(Header* header, const Parameters& parameters) noexcept {
  std::memset(static_cast<void*>(header), 0, sizeof *header);
  header->magic = kMagic;
  header->version = kFormatVersion;
  header->parameters = parameters;
}

void format_slice(Header* header, std::uint32_t index) noexcept {
  const Parameters& parameters = header->parameters;
  const Slice slice = slice_at(header, index);
  std::memset(static_cast<void*>(slice.state), 0, parameters.slice_bytes);
  slice.state->random = mix64(parameters.seed ^ (index + 1) * kGoldenRatio);
  if (const FilterOps* ops = find_ops(parameters.kind); ops->init) ops->init(parameters, slice);
  if (index + 1 == parameters.slices) {
    unsigned char* end = reinterpret_cast<unsigned char*>(slice.state) + parameters.slice_bytes;
    std::memset(end, 0,
                static_cast<std::size_t>(reinterpret_cast<unsigned char*>(header) +
                                         parameters.memory - end));
  }
}

void format(Header* header, const Parameters& parameters) noexcept {
  format_header(header, parameters);
  for (std::uint32_t i = 0; i < parameters.slices; ++i) format_slice(header, i);
}

bool check_header(const Header& header, Problem& problem) noexcept {
  if (header.magic != kMagic)
    return problem.set(Error::corrupt, "these bytes are not a streamfilter");
  if (header.version > kFormatVersion) {
    problem.set(Error::newer_version, "streamfilter of format version %u cannot be read",
                header.version);
    return problem.add_hint("This version of streamfilter reads formats up to %u.", kFormatVersion);
  }
  std::uint64_t reserved = header.reserved0 | header.reserved1;
  for (const std::uint64_t word : header.reserved) reserved |= word;
  if (header.version != kFormatVersion || reserved != 0)
    return problem.set(Error::corrupt, "damaged streamfilter: invalid header");
  if (!in_range(header.parameters))
    return problem.set(Error::corrupt, "damaged streamfilter: parameters out of range");

  // The stored parameters must be what completing them gives: nothing derived can be off.
  Definition definition = definition_of(header.parameters);
  Problem ignored;
  if (!complete(definition, ignored) ||
      std::memcmp(&definition.parameters, &header.parameters, sizeof(Parameters)) != 0)
    return problem.set(Error::corrupt, "damaged streamfilter: invalid parameters");
  return true;
}

bool check(const void* bytes, std::size_t length, Problem& problem) noexcept {
  if (length < sizeof(Header))
    return problem.set(Error::corrupt, "truncated streamfilter: %zu bytes", length);
  const Header* header = static_cast<const Header*>(bytes);
  if (!check_header(*header, problem)) return false;
  const Parameters& parameters = header->parameters;
  if (length != parameters.memory)
    return problem.set(Error::corrupt, "damaged streamfilter: %zu bytes instead of %llu", length,
                       static_cast<unsigned long long>(parameters.memory));

  const FilterOps* ops = find_ops(parameters.kind);
  for (std::uint32_t i = 0; i < parameters.slices; ++i) {
    const ConstSlice slice = slice_at(header, i);
    if (slice.state->arrivals > kMostArrivals || slice.state->novel > slice.state->arrivals ||
        !ops->check(parameters, slice) ||
        (slice.state->arrivals == 0 && ops->estimate(parameters, slice).fill > 0))
      return problem.set(Error::corrupt, "damaged streamfilter: invalid state of slice %u", i);
  }
  const unsigned char* at = static_cast<const unsigned char*>(bytes) + sizeof(Header) +
                            parameters.slices * parameters.slice_bytes;
  const unsigned char* end = static_cast<const unsigned char*>(bytes) + length;
  for (; at < end; ++at)
    if (*at != 0) return problem.set(Error::corrupt, "damaged streamfilter: invalid padding");
  return true;
}

void prefetch(const Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  if (const FilterOps* ops = find_ops(parameters.kind); ops->prefetch != nullptr)
    ops->prefetch(parameters, slice_at(header, slice_of(parameters, element.hash)), element);
}

bool test(const Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  return find_ops(parameters.kind)
      ->test(parameters, slice_at(header, slice_of(parameters, element.hash)), element);
}

unsigned places_of_bucket(const Parameters& parameters) noexcept {
  const FilterOps* ops = find_ops(parameters.kind);
  return ops->places != nullptr ? ops->places(parameters) : 0;
}

bool test(const Header* header, const Element& element, unsigned& place) noexcept {
  const Parameters& parameters = header->parameters;
  place = kNoPlace;
  if (places_of_bucket(parameters) == 0) return test(header, element);
  place = find_ops(parameters.kind)
              ->place(parameters, slice_at(header, slice_of(parameters, element.hash)), element);
  return place != kNoPlace;
}

bool insert(Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  const std::uint32_t index = slice_of(parameters, element.hash);
  SliceState& state = *slice_at(header, index).state;
  const bool seen =
      find_ops(parameters.kind)->insert(parameters, slice_at(header, index), element);
  const bool counts = state.arrivals < kMostArrivals;
  state.arrivals += counts;
  state.novel += counts && !seen;
  return seen;
}

bool erase(Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  return find_ops(parameters.kind)
      ->erase(parameters, slice_at(header, slice_of(parameters, element.hash)), element);
}

void merge_slice(Header* into, const Header* from, std::uint32_t index) noexcept {
  const Parameters& parameters = into->parameters;
  const Slice target = slice_at(into, index);
  const ConstSlice source = slice_at(from, index);
  find_ops(parameters.kind)->merge(parameters, target, source);
  target.state->arrivals = std::min(target.state->arrivals + source.state->arrivals, kMostArrivals);
  target.state->novel = std::min(target.state->novel, target.state->arrivals);
}

bool merge(Header* into, const Header* from, Problem& problem) noexcept {
  if (!mergeable(into->parameters, from->parameters, problem)) return false;
  for (std::uint32_t i = 0; i < into->parameters.slices; ++i) merge_slice(into, from, i);
  return true;
}

bool is_empty(const Header* header) noexcept {
  for (std::uint32_t i = 0; i < header->parameters.slices; ++i)
    if (slice_at(header, i).state->arrivals != 0) return false;
  return true;
}

void add_slice(Totals& totals, const Parameters& parameters, ConstSlice slice) noexcept {
  const Estimate one = find_ops(parameters.kind)->estimate(parameters, slice);
  totals.arrivals += slice.state->arrivals;
  totals.novel += slice.state->novel;
  totals.estimate.fill += one.fill / parameters.slices;
  totals.estimate.fpr += one.fpr / parameters.slices;
  totals.estimate.distinct += one.distinct;
}

Totals totals(const Header* header) noexcept {
  Totals sum;
  for (std::uint32_t i = 0; i < header->parameters.slices; ++i)
    add_slice(sum, header->parameters, slice_at(header, i));
  return sum;
}

double window_keys(const Parameters& parameters, double fnr) noexcept {
  const FilterOps* ops = find_ops(parameters.kind);
  if (ops->fnr_at == nullptr) return std::numeric_limits<double>::quiet_NaN();
  double low = 0, high = 1;
  while (ops->fnr_at(parameters, high) <= fnr) {
    low = high;
    high *= 2;
    if (high > 1e18) return std::numeric_limits<double>::infinity();
  }
  std::uintmax_t rounds = 100;
  const auto root = boost::math::tools::bisect(
      [&](double gap) { return ops->fnr_at(parameters, gap) <= fnr ? -1.0 : 1.0; }, low, high,
      [](double a, double b) { return b - a < 0.5; }, rounds, MathPolicy());
  return std::floor(root.first);
}

std::uint64_t checksum(const Header* header) noexcept {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(header);
  return hash_bytes(bytes + sizeof header->host, header->parameters.memory - sizeof header->host,
                    kMagic);
}

}  // namespace streamfilter
