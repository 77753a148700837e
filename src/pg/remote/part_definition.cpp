#include "pg/server/postgres.hpp"

#include "core/filter/common_options.hpp"
#include "core/filter/filter.hpp"
#include "core/filter/option_values.hpp"
#include "core/filter/options.hpp"
#include "core/filter/slicing_rules.hpp"
#include "core/format/slicing.hpp"
#include "pg/remote/part_definition.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

uint64 share(uint64 whole, uint64 part, uint64 of) {
  return static_cast<uint64>((static_cast<unsigned __int128>(whole) * part + of - 1) / of);
}

// In a part a key has one probe, horizontally.
void leave_out_slicing(Definition* definition) {
  Parameters& part = definition->parameters;
  part.slicing = Slicing::horizontal;
  part.dice = Dice::hv;
  part.k1 = part.k2 = 0;
  part.slices2 = 0;
  definition->leave_out(Common::slicing, Common::dice, Common::k1, Common::k2);
}

// Parameters of a relation with `slices` slices, each with k2 bits of a key. False: there are none.
bool find_parameters_of_part(const RemoteFilter* remote, uint32 slices, Parameters* result,
                             Problem& problem) {
  const Parameters& whole = remote->parameters;
  Parameters part = whole;
  take_share(part, slices);
  part.slices = slices;
  part.memory = sizeof(Header) + part.slices * whole.slice_bytes;
  part.keys = share(whole.keys, uint64{part.slices} * probes(whole), whole.slices);
  Definition definition = definition_of(part);
  leave_out_slicing(&definition);
  if (probes(whole) > 1) {
    const OptionSpec* k = find_k(whole);
    const uint64 bits = bits_per_probe(whole, whole.integer(k->word));
    if (!set_option(definition, "k", psprintf(UINT64_FORMAT, bits), problem)) return false;
  }
  if (complete(definition, problem)) {
    *result = definition.parameters;
    return true;
  }
  // Derived numbers of the whole filter may be too large for a part.
  const WordSet to_follow = definition_of(whole).given & ~definition_of(part).given;
  definition = remote->relation->definition;
  definition.given &= ~to_follow;
  definition.parameters = part;
  definition.give(Common::memory, Common::slices, Common::seed);
  leave_out_slicing(&definition);
  problem = Problem();
  if (!complete(definition, problem)) return false;
  *result = definition.parameters;
  return true;
}

Parameters parameters_of_part(const RemoteFilter* remote, uint32 slices) {
  Parameters part;
  Problem problem;
  if (!find_parameters_of_part(remote, slices, &part, problem)) raise(problem);
  return part;
}

const char* print(const Parameters& parameters) {
  auto* text = static_cast<char*>(palloc(kMaxDefinitionText));
  print_definition(parameters, text, kMaxDefinitionText);
  return text;
}

// Do keys of a part have equal places, apart from what its size determines?
bool has_same_keys(const Parameters& a, const Parameters& b) {
  constexpr auto kSizes = set_of(Common::memory, Common::keys, Common::fpr, Common::layout);
  return find_difference(a, b, kAllCommon & ~kSizes) == nullptr;
}

// A resized filter leaves a little of its memory unused, so that old and new places coincide.
bool is_about(uint64 memory, uint64 wanted) {
  return memory <= wanted + wanted / 32 && wanted <= memory + memory / 32;
}

}  // namespace

bool read_found(const char* text, Parameters* result) {
  Definition definition;
  Problem problem;
  std::size_t used;
  if (!parse_definition(text, strlen(text), definition, used, problem) ||
      !complete(definition, problem))
    return false;
  *result = definition.parameters;
  return true;
}

Definition definition_in(const char* text) {
  Definition definition;
  Problem problem;
  std::size_t used;
  const Size length = strlen(text);
  if (!parse_definition(text, length, definition, used, problem)) raise(problem);
  if (used != length)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("invalid definition of a filter: \"%s\"", text));
  return definition;
}

const char* definition_on(const RemoteFilter* remote, int server) {
  if (remote->count == 1) return print(remote->parameters);
  return print(parameters_of_part(remote, slices_on(remote, server)));
}

const OptionSpec* find_k(const Parameters& parameters) {
  return find_option(*find_ops(parameters.kind), "k");
}

bool is_as_asked(const RemoteFilter* remote, uint32 slices, const char* text) {
  const bool is_whole = remote->count == 1 && slices == remote->parameters.slices;
  const Parameters wanted = is_whole ? remote->parameters : parameters_of_part(remote, slices);
  if (strcmp(text, print(wanted)) == 0) return true;
  Parameters found;
  if (!read_found(text, &found) || !has_same_keys(found, wanted)) return false;
  const Definition& asked = remote->relation->options.asked;
  if ((asked.is_given(Common::memory) && !is_about(found.memory, wanted.memory)) ||
      (asked.parameters.keys != 0 && found.keys != wanted.keys) ||
      (asked.parameters.fpr > 0 && !is_same_fpr(found.fpr, wanted.fpr)) ||
      (asked.is_given(Common::layout) && found.layout != wanted.layout))
    return false;
  const FilterOps* ops = find_ops(wanted.kind);
  const OptionSpec* k = probes(remote->parameters) > 1 ? find_k(wanted) : nullptr;
  for (const OptionSpec& option : ops->options)
    if ((asked.has(option.word) || &option == k) && !is_same_option(option, found, wanted))
      return false;
  return true;
}

}  // namespace streamfilter::pg
