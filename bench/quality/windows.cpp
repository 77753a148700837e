// The cost of a window of keys: the bits that each of its keys needs, for every kind of the library
// and other published filters. Also kind clq with a window against kind timer, and with an
// importance against ibf2c and ibfmc: error rates at equal memory and fpr.
//
//   make bench
//   build/bench/windows OUTDIR [--curves] [--quick]
//
// also writes OUTDIR/windows.csv, and OUTDIR/curves-FPR.dat for bench/compare.sh. --curves: the
// first part alone. quick: a tenth as long.
//
// The first part is in window_courses.hpp; the others run one stream each. A row is a new key with
// probability 1/2, otherwise the key of the row L rows ago, L log-uniform: every power of ten has
// equally many repeats. Rows come every millisecond; importances are 1 to 7, equally often. Kind
// timer gets the lowest fpr of a list that it accepts in this memory, and clq gets the same.
//
// A key is a repeat within the window of the row that was accepted (timers), or whenever it was
// seen (importance). Rates: new keys called repeats; repeats missed, plain and weighted by
// importance; and keys that come after their window and are called repeats still.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "bench/lib/streams.hpp"
#include "bench/quality/window_report.hpp"
#include "core/filter/filter.hpp"

namespace {

using namespace streamfilter;

constexpr std::int64_t kWindow = 60000000, kRow = 1000;  // microseconds
constexpr std::uint64_t kLongestLag = 4 * kWindow / kRow;
constexpr unsigned kImportances = 7;
constexpr const char* kRates[] = {"0.001", "0.01", "0.02", "0.05", "0.1", "0.2"};

class Filter {
 public:
  static bool fits(const std::string& text, Parameters& parameters) {
    Problem problem;
    return bench::make_parameters(text, parameters, problem);
  }

  explicit Filter(const std::string& text) : bytes_(nullptr, std::free) {
    Parameters parameters;
    if (!fits(text, parameters)) {
      std::fprintf(stderr, "%s is refused\n", text.c_str());
      std::exit(2);
    }
    bytes_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, block_bytes(parameters))));
    if (!bytes_) std::exit(2);
    format(header(), parameters);
  }

  bool insert(const Element& element) { return streamfilter::insert(header(), element); }

 private:
  Header* header() { return reinterpret_cast<Header*>(bytes_.get()); }
  std::unique_ptr<unsigned char, void (*)(void*)> bytes_;
};

class LaggedStream {
 public:
  LaggedStream() : last_(kLongestLag), random_(1) {}

  std::uint64_t next() {
    std::uint64_t key = keys_;
    if (rows_ > 0 && random_.chance(.5)) {
      const double lag = std::exp(random_.unit() * std::log(static_cast<double>(kLongestLag)));
      key = last_[(rows_ - std::min(rows_, static_cast<std::uint64_t>(lag))) % kLongestLag];
    } else {
      ++keys_;
    }
    last_[rows_++ % kLongestLag] = key;
    return key;
  }

 private:
  std::vector<std::uint64_t> last_;
  std::uint64_t rows_ = 0, keys_ = 0;
  bench::Random random_;
};

unsigned importance_of(std::uint64_t key) {
  return 1 + static_cast<unsigned>(hash_word(key, 1) % kImportances);
}

struct Counts {
  double all = 0, wrong = 0;
  void add(bool is_wrong, double weight = 1) {
    all += weight;
    wrong += is_wrong ? weight : 0;
  }
  double percent() const { return all > 0 ? 100 * wrong / all : NAN; }
};

struct Rates {
  Counts fpr, fnr, weighted, after;
};

// A third of the rows come before those that count.
Rates measure(const std::string& definition, std::uint64_t rows, bool windows) {
  Filter filter(definition);
  LaggedStream stream;
  std::vector<std::int64_t> accepted(rows, -1);  // by key
  Rates rates;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t key = stream.next();
    const std::int64_t now = static_cast<std::int64_t>(row) * kRow;
    const double importance = importance_of(key);
    const bool seen = filter.insert({hash_word(key, 0), importance, now});
    const bool is_new = accepted[key] < 0,
               is_repeat = !is_new && (!windows || now - accepted[key] < kWindow);
    if (!is_repeat) accepted[key] = now;
    if (row < rows / 3) continue;
    if (is_new)
      rates.fpr.add(seen);
    else if (!is_repeat)
      rates.after.add(seen);
    else {
      rates.fnr.add(!seen);
      rates.weighted.add(!seen, importance);
    }
  }
  return rates;
}

class Report {
 public:
  explicit Report(const std::string& directory)
      : file_(std::fopen((directory + "/windows.csv").c_str(), "w")) {
    if (file_ == nullptr) {
      std::perror(directory.c_str());
      std::exit(2);
    }
    std::fprintf(file_, "memory,definition,fpr,fnr,weighted_fnr,after\n");
  }
  ~Report() { std::fclose(file_); }

  void begin(const char* title, bool windows) {
    windows_ = windows;
    std::printf("\n%s\n\n| memory | kind | FPR %% | FNR %% | %s %% |\n|---|---|---|---|---|\n",
                title, windows ? "after" : "weighted FNR");
  }
  void add(const char* memory, const std::string& options, const Rates& r) {
    std::printf("| %s | `%s` | %.3g | %.3g | %.3g |\n", memory, options.c_str(), r.fpr.percent(),
                r.fnr.percent(), (windows_ ? r.after : r.weighted).percent());
    std::fprintf(file_, "%s,\"%s\",%.6g,%.6g,%.6g,%.6g\n", memory, options.c_str(), r.fpr.percent(),
                 r.fnr.percent(), r.weighted.percent(), r.after.percent());
    std::fflush(stdout);
  }

 private:
  std::FILE* file_;
  bool windows_ = false;
};

std::string with(const std::string& options, const char* memory, const char* fpr) {
  return options + ", memory=" + memory + ", fpr=" + fpr + ", slices=1)";
}

// Where kind timer keeps no fpr of the list, clq gets 1 %.
void compare_windows(Report& report, std::uint64_t rows) {
  const std::string timer = "timer(window=1 minute, keys=36000, tick=4 s",
                    queue = "clq(window=1 minute";
  report.begin("Windows of one minute", true);
  for (const char* memory : {"64kB", "128kB", "192kB", "256kB", "384kB"}) {
    const char* fpr = "0.01";
    bool fits = false;
    for (const char* rate : kRates)
      if (Parameters p; !fits && (fits = Filter::fits(with(timer, memory, rate), p))) fpr = rate;
    for (const std::string& options : {timer, queue, queue + ", policy=fifo"})
      if (fits || options != timer)
        report.add(memory, options + ", fpr=" + fpr + ")",
                   measure(with(options, memory, fpr), rows, true));
  }
}

void compare_importance(Report& report, std::uint64_t rows) {
  report.begin("Keys of importance 1 to 7", false);
  for (const char* memory : {"64kB", "256kB"})
    for (const char* fpr : {"0.01", "0.1"})
      for (const std::string options :
           {"ibf2c(importance_levels='4'", "ibfmc(importance_range='1,7'", "clq(policy=lru",
            "clq(importance_range='1,7'", "clq(importance_levels='4'"})
        report.add(memory, options + ", fpr=" + fpr + ")",
                   measure(with(options, memory, fpr), rows, false));
}

}  // namespace

int main(int count, char** arguments) {
  const bool only_curves = count > 2 && std::strcmp(arguments[2], "--curves") == 0;
  if (only_curves) std::swap(arguments[--count], arguments[2]);
  const bench::Arguments read = bench::read_arguments(count, arguments);
  for (const double fpr : {.01, .001}) bench::report_windows(read, fpr);
  bench::report_models();
  if (only_curves) return 0;
  Report report(read.directory);
  const std::uint64_t rows = read.quick ? 300000 : 3000000;
  compare_windows(report, rows);
  compare_importance(report, rows);
  return 0;
}
