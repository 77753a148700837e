// Runs every fuzz target on the seeds of fuzzing and on the inputs that have failed so far. All in
// one file, because elsewhere each target is a program of its own.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "fuzz/advice.cpp"
#include "fuzz/block.cpp"
#include "fuzz/compact.cpp"
#include "fuzz/definition.cpp"
#include "fuzz/filters.cpp"
#include "fuzz/header.cpp"
#include "fuzz/packet.cpp"
#include "fuzz/saved.cpp"
#include "fuzz/seeds.cpp"
#include "fuzz/value.cpp"
#include "fuzz/wire.cpp"
#include "pg/remote/wire_answers.cpp"
#include "pg/storage/saved_rows.cpp"

BOOST_AUTO_TEST_SUITE(fuzz_test)

namespace {

void run(fuzz::Target target, const std::string& bytes) {
  // Copies input to memory of exactly its size, so that a sanitizer sees any access beyond it.
  const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
  target(exact.data(), exact.size());
}

fuzz::Target find_target(const std::string& name) {
  for (const fuzz::NamedTarget& target : fuzz::kTargets)
    if (name == target.name) return target.run;
  BOOST_FAIL("no target " << name);
  return nullptr;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_seed_keeps_its_promise) {
  std::map<std::string, unsigned> seeds;
  fuzz::make_seeds([&](const fuzz::Seed& seed) {
    BOOST_TEST_CONTEXT(seed.target << " " << seed.name) run(find_target(seed.target), seed.bytes);
    ++seeds[seed.target];
  });
  for (const fuzz::NamedTarget& target : fuzz::kTargets) BOOST_TEST(seeds[target.name] > 0u);
}

BOOST_AUTO_TEST_CASE(every_kind_is_among_the_seeds) {
  std::map<std::string, unsigned> kinds;
  fuzz::make_seeds([&](const fuzz::Seed& seed) {
    if (seed.target == "block") ++kinds[seed.name.substr(0, seed.name.find('-'))];
  });
  for (const fuzz::FilterOps* ops : fuzz::all_ops()) BOOST_TEST(kinds[ops->name] > 0u, ops->name);
}

BOOST_AUTO_TEST_CASE(what_was_found_once_keeps_its_promise) {
  for (const fuzz::NamedTarget& target : fuzz::kTargets) {
    const std::filesystem::path directory = std::filesystem::path("test/fuzz/corpus") / target.name;
    if (!std::filesystem::exists(directory)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      std::ifstream file(entry.path(), std::ios::binary);
      BOOST_TEST_REQUIRE(file.good());
      BOOST_TEST_CONTEXT(entry.path())
      run(target.run, {std::istreambuf_iterator<char>(file), {}});
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
