// What the programs that recompute figures have in common. Each is called `X OUTDIR [--quick]`,
// prints a table that ends with "N of M figures met" and writes OUTDIR/<figure>.dat for
// bench/plots/<figure>.gp. Its exit status is 1 if a figure is missed.
#pragma once

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>

namespace bench {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Arguments {
  std::string directory;
  bool quick = false;
};

inline Arguments read_arguments(int count, char** words) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--quick") == 0)
      arguments.quick = true;
    else if (words[i][0] != '-' && arguments.directory.empty())
      arguments.directory = words[i];
    else
      arguments.directory.clear(), i = count;
  }
  if (!arguments.directory.empty()) return arguments;
  std::fprintf(stderr, "usage: %s OUTDIR [--quick]\n", words[0]);
  std::exit(2);
}

inline std::string format(const char* pattern, ...) {
  char text[300];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return text;
}

// The numbers behind one plot: blocks of rows under a title, as gnuplot's `index` counts them.
class Data {
 public:
  Data(const Arguments& arguments, const std::string& figure, const char* columns) {
    const std::string path = arguments.directory + "/" + figure + ".dat";
    file_ = std::fopen(path.c_str(), "w");
    if (file_ == nullptr) {
      std::perror(path.c_str());
      std::exit(2);
    }
    std::fprintf(file_, "# %s\n", columns);
  }
  Data(const Data&) = delete;
  ~Data() { std::fclose(file_); }

  void block(const std::string& title) {
    std::fprintf(file_, "%s\"%s\"\n", blocks_++ > 0 ? "\n\n" : "", title.c_str());
  }
  void row(std::initializer_list<double> values) {
    for (const double value : values) std::fprintf(file_, "%.7g ", value);
    std::fputc('\n', file_);
  }

 private:
  std::FILE* file_;
  unsigned blocks_ = 0;
};

class Report {
 public:
  Report() { row("figure", "setting", "what", "printed", "model", "ours", "verdict"); }

  // A figure that must be met. Numbers that do not exist are kNone.
  void judge(const std::string& figure, const std::string& setting, const std::string& what,
             double printed, double model, double ours, bool met) {
    ++figures_;
    met_ += met;
    line(figure, setting, what, printed, model, ours, met ? "met" : "MISSED");
  }
  // One beside which nothing says what it must be; the remark says why.
  void show(const std::string& figure, const std::string& setting, const std::string& what,
            double printed, double model, double ours, const char* remark) {
    line(figure, setting, what, printed, model, ours, remark);
  }
  void note(const std::string& text) { std::printf("# %s\n", text.c_str()); }

  // Prints the last line; the program's exit status.
  int end() {
    std::printf("%u of %u figures met\n", met_, figures_);
    return met_ == figures_ ? 0 : 1;
  }

 private:
  static std::string number(double value) {
    return std::isnan(value) ? "-" : format("%.4g", value);
  }
  static void row(const char* figure, const char* setting, const char* what, const char* printed,
                  const char* model, const char* ours, const char* verdict) {
    std::printf("%-10s %-38s %-40s %9s %9s %9s  %s\n", figure, setting, what, printed, model, ours,
                verdict);
  }
  static void line(const std::string& figure, const std::string& setting, const std::string& what,
                   double printed, double model, double ours, const char* verdict) {
    row(figure.c_str(), setting.c_str(), what.c_str(), number(printed).c_str(),
        number(model).c_str(), number(ours).c_str(), verdict);
    std::fflush(stdout);
  }

  unsigned figures_ = 0, met_ = 0;
};

// Bounds are five standard errors: a right program exceeds one in 1.7 million. `spread` is how much
// larger than that of independent trials the variance is.
inline double five_errors(double rate, double n, double spread = 1) {
  return 5 * std::sqrt(spread * rate * (1 - rate) / n);
}

}  // namespace bench
