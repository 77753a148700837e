// Every kind of filter at equal memory: false negatives against false positives.
//
//   make bench
//   build/bench/compare OUTDIR [--quick]
//
// Kind auto is asked for the rate of false positives of each setting of each kind of the papers: for
// the one that setting has come to at the end of a finite stream, as `fpr` is a promise for every
// moment, and, as a harder question, for the one it had over the whole stream. Data files hold a
// block for each size and kind: FPR and FNR.
#include <algorithm>
#include <cstdio>

#include "compare_filters.hpp"

using namespace bench;

namespace {

constexpr double kBits[] = {1, 2, 4, 8, 16};
constexpr double kFrom = 4;  // bits per key from which auto shall be better

// How often something holds, of how many.
struct Score {
  unsigned holds = 0, all = 0;
  void count(bool held) {
    ++all;
    holds += held;
  }
};

struct Scores {
  Score keeps, fewer, fewer_whole, not_both, rlbsbf;
};

// More false positives than that would be a promise broken: four standard errors and one.
bool keeps(const Errors& errors, double fpr) {
  const double mean = fpr * errors.fresh;
  return errors.positives <= mean + 4 * std::sqrt(mean) + 1;
}

bool is_below_in_both(const Errors& a, const Errors& b) { return a.fpr() < b.fpr() && a.fnr() < b.fnr(); }

std::string rates(const Point* point) {
  return point == nullptr ? "-"
                          : text("%.2f/%.2f", 100 * point->all.fpr(), 100 * point->all.fnr());
}

const Point* least_sum(const std::vector<Point>& points) {
  const auto sum = [](const Point& p) { return p.all.fpr() + p.all.fnr(); };
  const auto least = std::min_element(points.begin(), points.end(), [&](const Point& a, const Point& b) {
    return sum(a) < sum(b);
  });
  return least == points.end() ? nullptr : &*least;
}

// What one setting of a paper's kind is held against.
void judge(const ComparedStream& stream, double bits, const ComparedKind& kind, const Point& point,
           Runner& runner, Scores& scores, std::vector<std::string>& exceptions) {
  const double least = 1 / point.all.fresh, asked = std::max({point.end.fpr(), point.all.fpr(), least});
  Point chosen, whole;
  if (!runner.run_auto(asked, chosen) || !runner.run_auto(std::max(point.all.fpr(), least), whole))
    return;
  const bool kept = keeps(chosen.end, asked),
             fewer = chosen.all.fnr() < point.all.fnr() || point.all.negatives == 0,
             both = is_below_in_both(point.all, chosen.all);
  if (bits >= kFrom) {
    scores.keeps.count(kept);
    scores.fewer.count(fewer);
    scores.fewer_whole.count(whole.all.fnr() < point.all.fnr() || point.all.negatives == 0);
    if (stream.gap == 0 && std::strcmp(kind.name, "rlbsbf") == 0)
      scores.rlbsbf.count(is_below_in_both(chosen.all, point.all));
  }
  scores.not_both.count(!both);
  const char* what = !kept ? "FPR not kept" : both ? "below auto in both" : bits >= kFrom && !fewer ? "fewer missed" : nullptr;
  if (what != nullptr)
    exceptions.push_back(text("%-16s %4.0f  %-60.60s %13s %13s  %s", stream.name.c_str(), bits,
                              point.setting.c_str(), rates(&point).c_str(),
                              rates(&chosen).c_str(), what));
}

void print_score(const char* what, const Score& score) {
  std::printf("%-76s %u of %u\n", what, score.holds, score.all);
}

}  // namespace

int main(int count, char** words) {
  const Arguments arguments = read_arguments(count, words);
  std::printf("FPR/FNR in per cent; for each kind the setting with the least sum\n");
  const std::vector<ComparedStream> streams = compared_streams(arguments.quick);
  const std::vector<ComparedKind> kinds = compared_kinds();
  std::vector<std::string> exceptions;
  Scores scores;
  std::printf("%-16s %4s", "stream", "bits");
  for (const ComparedKind& kind : kinds)
    if (std::strncmp(kind.name, "ibf", 3) != 0 && std::strcmp(kind.name, "fplru") != 0)
      std::printf(" %15s", kind.name);
  std::printf("\n");
  for (const ComparedStream& stream : streams) {
    DataFile data(arguments, "compare-" + stream.name, "FPR FNR");
    for (const double bits : kBits) {
      Runner runner(stream, bits);
      std::printf("%-16s %4.0f", stream.name.c_str(), bits);
      for (const ComparedKind& kind : kinds) {
        std::vector<Point> points;
        for (const std::string& options : kind.options)
          if (Point point; runner.run(kind, options, point)) points.push_back(point);
        if (kind.of_a_paper)
          for (const Point& point : points)
            judge(stream, bits, kind, point, runner, scores, exceptions);
        if (std::strncmp(kind.name, "ibf", 3) != 0 && std::strcmp(kind.name, "fplru") != 0)
          std::printf(" %15s", rates(least_sum(points)).c_str());
        std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
          return a.all.fpr() < b.all.fpr();
        });
        data.block(kind.name);
        for (const Point& point : points) data.row({point.all.fpr(), point.all.fnr()});
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  std::printf("\nWhere a setting of a paper's kind is better than auto, or auto has more false positives\n"
              "than it was asked to:\n%-16s %4s  %-60s %13s %13s\n", "stream", "bits", "setting", "", "auto");
  for (const std::string& line : exceptions) std::printf("%s\n", line.c_str());
  std::printf("\n");
  print_score("auto keeps the rate it was asked for, from 4 bits on:", scores.keeps);
  print_score("auto, asked for the setting's rate at the end, misses fewer, from 4 bits on:", scores.fewer);
  print_score("asked for the setting's rate over the whole stream, from 4 bits on:", scores.fewer_whole);
  print_score("no setting of a paper's kind is below auto in both errors:", scores.not_both);
  print_score("rlbsbf is above auto in both errors, finite streams from 4 bits on:", scores.rlbsbf);
  return scores.keeps.holds == scores.keeps.all ? 0 : 1;
}
