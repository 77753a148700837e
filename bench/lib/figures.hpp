// Shared by the programs that redraw figures: arguments, filters by definition, error counts, data
// files for gnuplot, and a table of the comparison.
#pragma once

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "core/filter/filter.hpp"

namespace bench {

[[gnu::format(printf, 1, 2)]] inline std::string text(const char* format, ...) {
  char buffer[512];
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(buffer, sizeof buffer, format, values);
  va_end(values);
  return buffer;
}

// OUTDIR [--quick]
struct Arguments {
  std::string directory;
  bool quick = false;
};

inline Arguments read_arguments(int count, char** words) {
  Arguments arguments;
  bool is_valid = true;
  for (int i = 1; i < count; ++i)
    if (std::strcmp(words[i], "--quick") == 0)
      arguments.quick = true;
    else if (arguments.directory.empty() && words[i][0] != '-')
      arguments.directory = words[i];
    else
      is_valid = false;
  if (!is_valid || arguments.directory.empty()) {
    std::fprintf(stderr, "usage: %s OUTDIR [--quick]\n", words[0]);
    std::exit(2);
  }
  return arguments;
}

// A filter of the library. A wrong definition ends the program.
class Filter {
 public:
  explicit Filter(const std::string& definition) {
    streamfilter::Problem problem;
    streamfilter::Parameters p;
    if (!make_parameters(definition, p, problem)) {
      std::fprintf(stderr, "%s: %s\n%s\n", definition.c_str(), problem.message, problem.detail);
      std::exit(2);
    }
    bytes_.resize(block_bytes(p) / 8);
    format(header(), p);
  }

  streamfilter::Header* header() { return reinterpret_cast<streamfilter::Header*>(bytes_.data()); }
  const streamfilter::Parameters& parameters() { return header()->parameters; }
  streamfilter::Totals totals() { return streamfilter::totals(header()); }
  double zeros() { return 1 - totals().estimate.fill; }

  // Hashes keys, unless they are their own fingerprints.
  streamfilter::Element element(std::uint64_t key, double importance = 0, std::int64_t time = 0) {
    const streamfilter::Parameters& p = parameters();
    return {p.key_shift != 0 ? key : streamfilter::hash_word(key, p.seed), importance, time};
  }
  bool insert(const streamfilter::Element& element) {
    return streamfilter::insert(header(), element);
  }
  bool test(const streamfilter::Element& element) { return streamfilter::test(header(), element); }

 private:
  std::vector<std::uint64_t> bytes_;
};

// The `memory` of a filter of one slice that keeps `body` bytes for its cells.
inline std::uint64_t memory_for(std::uint64_t body) {
  return streamfilter::kStoredHeader + sizeof(streamfilter::SliceState) + (body + 63) / 64 * 64;
}

// Error rates by class: among new elements, and among repeats.
struct Errors {
  double fresh = 0, repeats = 0, positives = 0, negatives = 0;

  void count(bool repeat, bool reported) {
    (repeat ? repeats : fresh) += 1;
    positives += reported && !repeat;
    negatives += repeat && !reported;
  }
  double fpr() const { return fresh > 0 ? positives / fresh : 0; }
  double fnr() const { return repeats > 0 ? negatives / repeats : 0; }
};

// A data file for gnuplot; the first line names the columns.
class DataFile {
 public:
  DataFile(const Arguments& arguments, const std::string& figure, const std::string& columns)
      : file_(std::fopen((arguments.directory + "/" + figure + ".dat").c_str(), "w")) {
    if (file_ == nullptr) {
      std::perror((arguments.directory + "/" + figure + ".dat").c_str());
      std::exit(2);
    }
    std::fprintf(file_, "# %s\n", columns.c_str());
  }
  DataFile(const DataFile&) = delete;
  ~DataFile() { std::fclose(file_); }

  void row(const std::vector<double>& values) {
    for (const double value : values) std::fprintf(file_, "%.7g ", value);
    std::fputc('\n', file_);
  }
  // Begins a block with its title.
  void block(const std::string& title) {
    std::fprintf(file_, "%s\"%s\"\n", blocks_++ > 0 ? "\n\n" : "", title.c_str());
  }
  // Ends a block of connected lines.
  void end_block() { std::fputs("\n\n", file_); }

 private:
  std::FILE* file_;
  unsigned blocks_ = 0;
};

// The printed table. A figure is met, missed or, if nothing is asserted, commented.
class Report {
 public:
  explicit Report(const char* title) {
    std::printf("%s\n%-34s %-34s %12s %12s  %s\n", title, "what", "setting", "printed", "ours",
                "verdict");
  }

  // `printed` may be empty.
  void line(const std::string& what, const std::string& setting, const std::string& printed,
            const std::string& ours, const std::string& verdict) {
    std::printf("%-34s %-34s %12s %12s  %s\n", what.c_str(), setting.c_str(), printed.c_str(),
                ours.c_str(), verdict.c_str());
    std::fflush(stdout);
  }

  // An assertion.
  void check(bool holds, const std::string& what, const std::string& setting,
             const std::string& printed, const std::string& ours, const std::string& rule) {
    ++asserted_;
    missed_ += !holds;
    line(what, setting, printed, ours, (holds ? "met: " : "MISSED: ") + rule);
  }

  int end() {
    std::printf("%u of %u asserted figures met\n", asserted_ - missed_, asserted_);
    return missed_ == 0 ? 0 : 1;
  }

 private:
  unsigned asserted_ = 0, missed_ = 0;
};

inline std::string percent(double share) { return text("%.3f %%", 100 * share); }

}  // namespace bench
