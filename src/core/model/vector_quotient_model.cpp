#include "core/model/vector_quotient_model.hpp"

namespace streamfilter::vector_quotient_model {

double fpr(const AnyShape& shape, double entries, double lines) noexcept {
  return std::min(1.0, entries / tags(shape) * (2 - 1 / lines));
}

// The fewest buckets of these bits with which full lines keep the rate, and then as many as leave
// the line as many slots.
static bool find_buckets(double fpr, AnyShape& shape) noexcept {
  for (shape.buckets = 1; shape.buckets <= kMaxBuckets; ++shape.buckets) {
    shape.slots = slots_of(shape.bits, shape.buckets, shape.ages);
    if (fpr_bound(shape) > fpr) continue;
    while (shape.buckets < kMaxBuckets &&
           slots_of(shape.bits, shape.buckets + 1, shape.ages) == shape.slots)
      ++shape.buckets;
    return true;
  }
  return false;
}

bool best_shape(double fpr, double growth, unsigned bits, unsigned buckets, unsigned ages,
                AnyShape& best) noexcept {
  best = {};
  for (unsigned b = bits > 0 ? bits : 1; b <= (bits > 0 ? bits : kMaxRemainder); ++b) {
    AnyShape shape = {0, buckets, b, ages};
    if (buckets > 0) {
      shape.slots = slots_of(b, buckets, ages);
      if (fpr_bound(shape) * growth > fpr) continue;
    } else if (!find_buckets(fpr / growth, shape)) {
      continue;
    }
    if (shape.slots > best.slots ||
        (shape.slots == best.slots && fpr_bound(shape) < fpr_bound(best)))
      best = shape;
  }
  return best.slots > 0;
}

// Heights of lines differ little (Mitzenmacher's equations for two choices, solved for lines of 8
// to 63 slots): what is free when the first keys are lost hardly depends on the number of slots.
double held(const AnyShape& shape, double lines) noexcept {
  const double slots = shape.slots;
  if (lines <= 1) return slots;
  return slots - 1.7 + 0.19 * std::log(slots / 8);
}

// Fits measurements of 19 to 49 slots.
double gone(const AnyShape& shape, double later) noexcept {
  const double slots = shape.slots;
  return std::erfc((slots - later) / std::sqrt(0.18 * slots)) / 2;
}

Prediction predict(const AnyShape& shape, double lines, double slices,
                   const Stream& stream) noexcept {
  if (stream.gap() != 0) return kNoPrediction;
  const double capacity = shape.slots * lines;
  const auto held = [&](double n) { return exact_store_model::held(n, capacity, slices); };
  const auto rate = [&](double n) { return fpr(shape, held(n) / (slices * lines), lines); };
  return {exact_store_model::mean_fpr(stream.distinct(), rate),
          exact_store_model::mean_fnr(stream, held, rate)};
}

}  // namespace streamfilter::vector_quotient_model
