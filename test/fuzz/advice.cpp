// Numbers of a stream, as streamfilter_advise and streamfilter_slices_needed take them.
#include <cmath>

#include "core/advise/advise.hpp"
#include "core/model/slicing_model.hpp"
#include "fuzz/filters.hpp"

namespace fuzz {
namespace {

void predict(Input input) {
  const double rows = input.take<double>(), distinct = input.take<double>(),
               gap = input.take<double>(), fpr = input.take<double>();
  const auto memory = input.take<std::uint32_t>();
  const auto chosen = input.take<std::uint8_t>();
  Problem problem;
  Stream stream;
  if (!describe_stream(rows, distinct, chosen & 1 ? &gap : nullptr, stream, problem)) return;
  Definition wish;
  wish.parameters.memory = memory;
  wish.give(Common::memory);
  if (fpr > 0 && fpr < 1) wish.parameters.fpr = fpr;
  const std::span all = all_ops();
  wish.parameters.kind = all[(chosen >> 1) % all.size()]->kind;
  wish.parameters.keys = chosen & 128 ? static_cast<std::uint64_t>(distinct) : 0;
  if (!complete(wish, problem)) return;
  ask(wish.parameters);
  const auto predict = find_ops(wish.parameters.kind)->predict;
  if (predict == nullptr) return;
  const Prediction predicted = predict(wish.parameters, stream);
  FUZZ_REQUIRE(!(predicted.fpr < -1e-6) && !(predicted.fpr > 1 + 1e-6));
  FUZZ_REQUIRE(!(predicted.fnr < -1e-6) && !(predicted.fnr > 1 + 1e-6));
}

void lose_slices(Input input) {
  const auto probes = 1 + input.take<std::uint8_t>() % 64;
  const auto lost = 1 + (input.take<std::uint32_t>() >> 1);
  const double fpr = input.take<double>(), most = input.take<double>();
  if (!(fpr >= 0 && fpr < 1 && most >= 0 && most < 1)) return;
  for (const double slices : {slicing_model::slices_for_fpr(probes, fpr, lost, most),
                              slicing_model::slices_for_fnr(probes, lost, most)})
    FUZZ_REQUIRE(slices >= 1);
}

}  // namespace
}  // namespace fuzz

void fuzz::advice(const std::uint8_t* data, std::size_t size) {
  predict({data, size});
  lose_slices({data, size});
}
