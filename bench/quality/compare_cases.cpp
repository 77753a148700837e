// The cases of bench/quality/compare.cpp, for others to repeat: bench/compare_sql.sh does, by SQL.
//
//   make bench
//   build/bench/compare_cases OUTDIR [--quick]
//
// OUTDIR/rows.txt has the rows of all streams: stream, number, key. OUTDIR/cases.txt has a line for
// each filter of the library: stream, definition, what the library makes of it, rows, distinct
// keys, and its errors over the whole stream; nothing but stream and definition where it refuses.
// Fields are separated by tabs. Keys are integers, hashed with seed 0 as the SQL type int is.
#include <cstdio>
#include <cstdlib>
#include <set>

#include "bench/quality/compare_filters.hpp"

using namespace bench;

namespace {

constexpr double kBits[] = {1, 2, 4, 8, 16};
constexpr const char* kAutoRates[] = {"0.3", "0.1", "0.03", "0.01", "0.003", "0.001", "0.0001"};

std::FILE* open(const Arguments& arguments, const char* name) {
  const std::string path = arguments.directory + "/" + name;
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    std::perror(path.c_str());
    std::exit(2);
  }
  return file;
}

void write_rows(std::FILE* file, const ComparedStream& stream) {
  stream.rows.for_each_row([&](std::size_t row, std::uint32_t key, bool) {
    std::fprintf(file, "%s\t%zu\t%u\n", stream.name.c_str(), row, key);
  });
}

std::string definition_of(const ComparedStream& stream, double bits, const char* kind,
                          std::string options) {
  for (std::size_t at; (at = options.find("%keys")) != std::string::npos;) {
    const bool is_part = options[at + 5] == '/';
    const double part = is_part ? options[at + 6] - '0' : 1;
    options.replace(at, is_part ? 7 : 5, text("%.0f", std::ceil(stream.keys() / part)));
  }
  const std::uint64_t bytes = static_cast<std::uint64_t>(bits * stream.keys()) / 512 * 512 / 8;
  return std::string(kind) + "(" + options +
         text(", slices=1, memory=%llu)", static_cast<unsigned long long>(memory_for(bytes)));
}

void write_case(std::FILE* file, const ComparedStream& stream, const std::string& definition) {
  std::fprintf(file, "%s\t%s", stream.name.c_str(), definition.c_str());
  streamfilter::Parameters parameters;
  streamfilter::Problem problem;
  if (make_parameters(definition, parameters, problem)) {
    char printed[streamfilter::kMaxDefinitionText];
    print_definition(parameters, printed, sizeof printed);
    Filter filter(definition);
    const Errors errors = stream.rows.run(filter);
    std::fprintf(file, "\t%s\t%.0f\t%.0f\t%.0f\t%.0f\n", printed, stream.rows.rows(),
                 stream.rows.distinct(), errors.positives, errors.negatives);
  } else {
    std::fprintf(file, "\t\\N\t\\N\t\\N\t\\N\t\\N\n");
  }
}

void write_cases(std::FILE* file, const ComparedStream& stream) {
  std::set<std::string> definitions;
  for (const double bits : kBits) {
    for (const ComparedKind& kind : compared_kinds())
      if (streamfilter::find_ops(kind.definition()) != nullptr)
        for (const std::string& options : kind.options)
          definitions.insert(definition_of(stream, bits, kind.definition(), options));
    for (const char* rate : kAutoRates) {
      const std::string asked = std::string("fpr=") + rate;
      definitions.insert(definition_of(stream, bits, "auto", asked));
      definitions.insert(definition_of(stream, bits, "auto", asked + ", keys=%keys"));
    }
  }
  for (const std::string& definition : definitions) write_case(file, stream, definition);
}

}  // namespace

int main(int count, char** words) {
  const Arguments arguments = read_arguments(count, words);
  std::FILE *rows = open(arguments, "rows.txt"), *cases = open(arguments, "cases.txt");
  for (const ComparedStream& stream : compared_streams(arguments.quick)) {
    write_rows(rows, stream);
    write_cases(cases, stream);
  }
  return std::fclose(rows) != 0 || std::fclose(cases) != 0 ? 2 : 0;
}
