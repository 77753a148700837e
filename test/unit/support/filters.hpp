// Filters for tests, made from definitions as users write them.
#pragma once

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "core/filter/packed_header.hpp"

namespace unit {

using boost::test_tools::tolerance;

// Reads and completes a definition. False: `problem` says why.
inline bool make_parameters(const std::string& text, streamfilter::Parameters& parameters,
                            streamfilter::Problem& problem) {
  streamfilter::Definition definition;
  std::size_t used = 0;
  if (!parse_definition(text.data(), text.size(), definition, used, problem) ||
      !complete(definition, problem))
    return false;
  parameters = definition.parameters;
  return true;
}

// The parameters of a definition that is valid.
inline streamfilter::Parameters parameters_of(const std::string& text) {
  streamfilter::Parameters parameters{};
  streamfilter::Problem problem;
  const bool valid = make_parameters(text, parameters, problem);
  BOOST_REQUIRE_MESSAGE(valid, text << ": " << problem.message);
  return parameters;
}

inline std::string text_of(const streamfilter::Parameters& parameters) {
  char text[streamfilter::kMaxDefinitionText];
  return std::string(text, print_definition(parameters, text, sizeof text));
}

// The rate of false positives that a definition asks for.
inline double wanted_fpr(const streamfilter::Parameters& parameters) {
  return definition_of(parameters).wanted_fpr();
}

// The value of one of the kind's own options.
inline std::uint64_t option_value(const streamfilter::Parameters& parameters,
                                  const std::string& name) {
  const streamfilter::FilterOps& ops = *streamfilter::find_ops(parameters.kind);
  for (const streamfilter::OptionSpec& option : ops.options)
    if (name == option.name) return parameters.integer(option.word);
  BOOST_FAIL("no option " << name);
  return 0;
}

// A filter in exactly as many bytes as it says, so that a sanitizer sees any access beyond them.
class Filter {
 public:
  explicit Filter(const std::string& definition) : Filter(parameters_of(definition)) {}

  explicit Filter(const streamfilter::Parameters& parameters)
      : bytes_(block_bytes(parameters), 0xa5) {  // format must not rely on zeros
    format(header(), parameters);
  }

  streamfilter::Header* header() { return reinterpret_cast<streamfilter::Header*>(bytes_.data()); }
  const streamfilter::Header* header() const {
    return reinterpret_cast<const streamfilter::Header*>(bytes_.data());
  }
  const streamfilter::Parameters& parameters() const { return header()->parameters; }
  std::vector<unsigned char>& bytes() { return bytes_; }
  const std::vector<unsigned char>& bytes() const { return bytes_; }
  streamfilter::Slice slice(std::uint32_t index = 0) { return slice_at(header(), index); }

  bool insert(const streamfilter::Element& element) {
    return streamfilter::insert(header(), element);
  }
  bool test(const streamfilter::Element& element) const {
    return streamfilter::test(header(), element);
  }
  bool merge(const Filter& from) {
    streamfilter::Problem problem;
    const bool fits = streamfilter::merge(header(), from.header(), problem);
    if (!fits) BOOST_TEST_MESSAGE(problem.message);
    return fits;
  }
  streamfilter::Estimate estimate() const { return totals(header()).estimate; }
  double fpr_bound() const { return ops_of(header()).fpr_bound(parameters()); }
  bool is_valid() const {
    streamfilter::Problem problem;
    return check(bytes_.data(), bytes_.size(), problem);
  }

 private:
  std::vector<unsigned char> bytes_;
};

}  // namespace unit
