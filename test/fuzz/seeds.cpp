#include "fuzz/seeds.hpp"

#include <cstddef>
#include <vector>

#include "core/filter/sparse_form.hpp"
#include "every_kind.hpp"
#include "fuzz/filters.hpp"

namespace fuzz {
namespace {

using Take = std::function<void(const Seed&)>;

// Options that change the form of a filter's bytes, each combined with every kind.
const char* const kForms[] = {
    "",
    "layout=blocked",
    "slices=3",
    "slices=4, slicing=vertical",
    "slices='2,3', slicing=diced",
    "slices='2,3', slicing=diced, dice=vh",
    "slices=4, k1=2, k2=2",
    "keys=50, fpr=0.1, nulls=not distinct, seed=7",
};

// Ways to use a kind, beside that of its row alone.
struct Own {
  std::string kind;
  std::string options;
};
const Own kOwn[] = {
    {"bloom", "k=4"},
    {"bloom", "k=3, grow=density"},
    {"bloom", "keys=20, fpr=0.2, grow=cardinality"},
    {"sbf", "max=3, cell_bits=2, gap=20"},
    {"rsbf", "variant=measured"},
    {"bsbf", "k=2"},
    {"bsbfsd", "k=2"},
    {"rlbsbf", "k=2"},
    {"sqf", "fingerprint=integer, keys=100"},
    {"dsqf", "r=6"},
    {"ibf2c", "importance_levels='10'"},
    {"ibfmc", "importance_range='0,100'"},
    {"ibfmc", "importance_levels='1,10,100', delete=value"},
    {"ibfh", "importance_range='0,100', delete=random"},
    {"timer", "window=10 minutes, k=4"},
    {"timer", "window=10 minutes, tick=1 minute, k=3"},
    {"timer", "window=10 minutes, equal_timers=3, k=3"},
    {"timer", "window=100 rows, grow=density, k=3"},
    {"timer", "window=20 rows"},
    {"lru", "policy=clock"},
    {"fplru", "q=0.5"},
    {"clq", "policy=fifo"},
    {"clq", "lines=2"},
    {"clq", "window=10 minutes"},
    {"clq", "window=50 rows"},
    {"clq", "importance_range='0,100'"},
    {"clq", "bits=12, bucket=8"},
    {"vqf", "window=10 minutes"},
    {"vqf", "window=50 rows"},
    {"vqf", "bits=6, origin='9,4'"},
};

// In the least memory that will do; false: the kind has no such form.
bool find_parameters(const std::string& kind, const std::string& options, Parameters& parameters) {
  for (const char* memory : {"640", "1kB", "1500", "2003", "4kB", "8kB"}) {
    const std::string text =
        kind + "(memory=" + memory + (options.empty() ? "" : ", ") + options + ")";
    if (read_definition(text.data(), text.size(), parameters)) return true;
  }
  return false;
}

std::string text_of(const Parameters& parameters) {
  char text[kMaxDefinitionText];
  return std::string(text, print_definition(parameters, text, sizeof text));
}

// After so many rows, an eighth of them repeats.
std::string slices_of(const Parameters& parameters, unsigned rows) {
  Block block(block_bytes(parameters));
  format(block.header(), parameters);
  for (unsigned i = 0; i < rows; ++i)
    insert(block.header(),
           {mix64(i * 7 / 8), static_cast<double>(i % 100), std::int64_t{i} * 1000000});
  const auto* bytes = reinterpret_cast<const char*>(block.bytes.data());
  return {bytes + sizeof(Header), bytes + block.bytes.size()};
}

std::string row_of(char sort, std::int32_t number, const std::string& data) {
  const auto size = static_cast<std::uint16_t>(data.size());
  std::string head{sort, '\0'};
  head.append(reinterpret_cast<const char*>(&size), sizeof size);
  head.append(reinterpret_cast<const char*>(&number), sizeof number);
  return head + data;
}

// The rows that save a filter: its chunks, as many as there are slices, and some of its log.
std::string rows_of(const Parameters& parameters, const std::string& slices) {
  std::string rows;
  for (std::uint32_t i = 0; i < parameters.slices; ++i)
    rows += row_of('c', static_cast<std::int32_t>(i + 1),
                   slices.substr(i * parameters.slice_bytes, parameters.slice_bytes));
  const std::string numbers("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL");
  return rows + row_of('a', 0, numbers.substr(0, 16)) + row_of('r', 0, numbers) +
         row_of('e', 0, numbers.substr(0, 8));
}

void seed_filter(const std::string& name, const Parameters& parameters, const Take& take) {
  const std::string text = text_of(parameters);
  take({"definition", name, text});
  take({"header", name, {reinterpret_cast<const char*>(&parameters), sizeof parameters}});
  const std::string slices = slices_of(parameters, 100);
  take({"block", name, text + '\0' + slices});
  take({"value", name, std::string("\2\0\1*", 4) + text + '\0' + slices});
  take({"saved", name, text + '\0' + rows_of(parameters, slices)});
  take({"packet", name, text + std::string(5, '\0') + slices.substr(0, parameters.slice_bytes)});
}

// With a dozen keys.
void seed_compact(const std::string& name, const Parameters& parameters, const Take& take) {
  Block block(block_bytes(parameters));
  format(block.header(), parameters);
  for (unsigned i = 0; i < 20; ++i) insert(block.header(), {mix64(i * 7 / 10)});
  const std::vector<unsigned char> bytes = compact_of(block);
  if (!bytes.empty()) take({"compact", name, {bytes.begin() + kHostWord, bytes.end()}});
}

void seed_texts(const Take& take) {
  int number = 0;
  for (const char* text : {"auto(keys=1000, memory=\"3 kB\")", "sbf(fpr=1e999)", "sbf(memory=1TB)",
                           "timer(window='inf rows')", "bloom(k=nan, memory=-1)", "clq(bits=*)"})
    take({"definition", "text-" + std::to_string(number++), text});
}

void seed_values(const Take& take) {
  const std::string text(1, '\0'), binary(1, '\1'), decimal(1, '\3');
  take({"value", "empty", text + "sbf(memory=1kB)"});
  take({"value", "cut", text + "sbf(memory=1kB):1:AAAA"});
  take({"value", "nothing", binary});
  for (const char* number : {"0", "-12.50", "1e400", "NaN", "Infinity", "1e-20000", ".5E+3"})
    take({"value", std::string("decimal") + number, decimal + number});
}

void seed_numbers(const Take& take) {
  struct Numbers {
    double rows, distinct, gap, fpr;
    std::uint32_t memory;
    std::uint8_t chosen;
  };
  for (std::size_t i = 0; i < 2 * all_ops().size(); ++i) {
    const Numbers numbers{1e6, 1e4, 100, 0.01, 65536, static_cast<std::uint8_t>(i)};
    take({"advice",
          "numbers-" + std::to_string(i),
          {reinterpret_cast<const char*>(&numbers),
           offsetof(Numbers, chosen) + sizeof numbers.chosen}});
  }
}

void seed_answers(const Take& take) {
  const std::string zero(1, '\0'), one(1, '\1'), two(1, '\2');
  take({"wire", "replies", zero + one + '\4' + zero + one + zero + '\4'});
  take({"wire", "failure", zero + zero + '\4' + zero + two + '\3' + '\4'});
  take({"wire", "shape", one + one + one + std::string("\1\0\0\0\20\0\0\0", 8)});
  take({"wire", "answers", two + one + '\3' + "{t,f,NULL}"});
  take({"wire", "flag", two + one + zero + "t"});
  take({"wire", "refusal", two + one + zero + "connection failed: FATAL:  28P01: password wrong"});
}

// Every kind as its row needs it, then the others.
std::vector<Own> ways() {
  std::vector<Own> all;
  for (const FilterOps* ops : all_ops()) {
    const std::string text = every_kind::definition_of(*ops, "", 50);
    const std::size_t comma = text.find(", ");
    all.push_back({ops->name, comma == std::string::npos
                                  ? ""
                                  : text.substr(comma + 2, text.size() - comma - 3)});
  }
  all.insert(all.end(), std::begin(kOwn), std::end(kOwn));
  return all;
}

}  // namespace

void make_seeds(const Take& take) {
  int number = 0;
  for (const Own& own : ways())
    for (const std::string form : kForms) {
      Parameters parameters;
      const std::string& options = own.options;
      if (find_parameters(own.kind, options + (options.empty() || form.empty() ? "" : ", ") + form,
                          parameters)) {
        const std::string name = own.kind + ("-" + std::to_string(number++));
        seed_filter(name, parameters, take);
        seed_compact(name, parameters, take);
      }
    }
  seed_texts(take);
  seed_numbers(take);
  seed_values(take);
  seed_answers(take);
}

}  // namespace fuzz
