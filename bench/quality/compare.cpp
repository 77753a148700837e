// Every kind of filter at equal memory: false negatives against false positives.
//
//   make bench
//   build/bench/compare OUTDIR [--quick]
//
// Kind auto is asked for the false-positive rate of each setting of each kind of the papers: the
// rate that the setting has at the end of a finite stream, because `fpr` is a promise for every
// moment; and as a harder question, the setting's rate over the whole stream. Data files hold a
// block for each size and kind: FPR and FNR.
#include <algorithm>
#include <cstdio>
#include <map>

#include "bench/quality/compare_filters.hpp"
#include "bench/quality/compare_importance.hpp"

using namespace bench;

namespace {

constexpr double kBits[] = {1, 2, 4, 8, 16};
constexpr double kFewMissed = .05;
constexpr double kFrom = 4;  // bits per key from which auto must be better

// How often a comparison holds, and how many there were.
struct Score {
  unsigned holds = 0, all = 0;
  void count(bool held) {
    ++all;
    holds += held;
  }
};

struct Scores {
  Score keeps, fewer, fewer_whole, not_both, not_both_from_4, rlbsbf, rlbsbf_below_4, two_lines,
      two_lines_few, nearly_best, nearly_best_from_4, nearly_best_finite;
};

// With more false positives a promise would be broken: four standard errors and one.
bool keeps(const Errors& errors, double fpr) {
  const double mean = fpr * errors.fresh;
  return errors.positives <= mean + 4 * std::sqrt(mean) + 1;
}

bool is_below_in_both(const Errors& a, const Errors& b) {
  return a.fpr() < b.fpr() && a.fnr() < b.fnr();
}

// The same, and fewer misses, unless there are no errors at all.
bool is_at_most_in_both(const Errors& a, const Errors& b) {
  return a.positives <= b.positives && a.negatives <= b.negatives &&
         (a.positives + a.negatives < b.positives + b.negatives || b.positives + b.negatives == 0);
}

std::string rates(const Point* point) {
  return point == nullptr ? "-" : text("%.2f/%.2f", 100 * point->all.fpr(), 100 * point->all.fnr());
}

const Point* least_sum(const std::vector<Point>& points) {
  const auto sum = [](const Point& p) { return p.all.fpr() + p.all.fnr(); };
  const auto least =
      std::min_element(points.begin(), points.end(),
                       [&](const Point& a, const Point& b) { return sum(a) < sum(b); });
  return least == points.end() ? nullptr : &*least;
}

std::string line_of(const ComparedStream& stream, double bits, const Point& setting,
                    const Point* ours, const char* what) {
  // The size is the same for all.
  std::string name = setting.setting;
  if (const std::size_t at = name.find("memory="); at != std::string::npos)
    name.erase(at, std::min(name.find(", ", at) + 2, name.size()) - at);
  return text("%-16s %4.0f  %-52.52s %13s %13s  %s", stream.name.c_str(), bits, name.c_str(),
              rates(&setting).c_str(), rates(ours).c_str(), what);
}

// The filters that one setting of a paper's kind is compared with.
void judge(const ComparedStream& stream, double bits, const Point& point, Runner& runner,
           Scores& scores, std::vector<std::string>& exceptions, std::vector<Point>& autos) {
  const double least = 1 / point.all.fresh,
               asked = std::max({point.end.fpr(), point.all.fpr(), least});
  Point chosen, whole;
  if (!runner.run_auto(asked, chosen) || !runner.run_auto(std::max(point.all.fpr(), least), whole))
    return;
  autos.push_back(chosen);
  const bool kept = keeps(chosen.end, asked),
             fewer = chosen.all.fnr() < point.all.fnr() || point.all.negatives == 0,
             both = is_below_in_both(point.all, chosen.all);
  if (bits >= kFrom) {
    scores.keeps.count(kept);
    scores.fewer.count(fewer);
    scores.fewer_whole.count(whole.all.fnr() < point.all.fnr() || point.all.negatives == 0);
    scores.not_both_from_4.count(!both);
  }
  scores.not_both.count(!both);
  const char* what = !kept                     ? "FPR not kept"
                     : both                    ? "below auto in both"
                     : bits >= kFrom && !fewer ? "misses fewer"
                                               : nullptr;
  if (what != nullptr) exceptions.push_back(line_of(stream, bits, point, &chosen, what));
}

// clq with two lines and with one, for the same rate: do two lines miss fewer, or none?
void judge_lines(Runner& runner, Scores& scores) {
  for (const char* rate : kForgettingRates) {
    Point one, two;
    const std::string asked = std::string("fpr=") + rate;
    if (!runner.run({"clq", false, {}}, asked, one) ||
        !runner.run({"clq", false, {}}, asked + ", lines=2", two))
      continue;
    const bool holds = two.all.negatives < one.all.negatives || two.all.negatives == 0;
    (one.all.fnr() <= kFewMissed ? scores.two_lines_few : scores.two_lines).count(holds);
  }
}

constexpr double kNearly = .01;

// What a rule that knows bits of a key (without keys: nothing of them) and fpr could reach at most:
// for each of these, how often each definition is nearly best.
class BestRule {
 public:
  void count(double bits, double rate, const std::string& definition, bool holds) {
    by_question_[{bits, rate}][definition] += holds;
  }
  unsigned holds() const {
    unsigned sum = 0;
    for (const auto& [question, definitions] : by_question_) {
      unsigned most = 0;
      for (const auto& [definition, count] : definitions) most = std::max(most, count);
      sum += most;
    }
    return sum;
  }

 private:
  std::map<std::pair<double, double>, std::map<std::string, unsigned>> by_question_;
};

// Among kinds that keep a rate, told the number of keys if auto is: does auto miss at most one of a
// hundred repeats more than the best of them?
void judge_best(const ComparedStream& stream, double bits, Runner& runner, Scores& scores,
                std::vector<std::string>& exceptions, BestRule& rule) {
  const ComparedKind kinds[] = {
      {"sbf", true, {""}},
      {"rsbf", true, {""}},
      {"sqf", true, {"", ", keys=%keys"}},
      {"dsqf", true, {""}},
      {"lru", true, {""}},
      {"fplru", true, {""}},
      {"clq", false, {"", ", lines=2", ", policy=second", ", keys=%keys"}},
      {"vqf", false, {"", ", keys=%keys"}},
      {"bloom", false, {", keys=%keys"}},
  };
  for (const double rate : {.3, .1, .03, .01, .003, .001, .0001}) {
    Point chosen, best, point;
    if (!runner.run_auto(rate, chosen)) continue;
    best.all.negatives = best.all.repeats = 1;
    std::vector<std::pair<std::string, double>> missed = {{"auto", chosen.all.fnr()}};
    for (const ComparedKind& kind : kinds)
      for (const std::string& rest : kind.options) {
        if (stream.gap > 0 && rest.find("keys") != std::string::npos) continue;
        if (!runner.run(kind, text("fpr=%g", rate) + rest, point)) continue;
        missed.emplace_back(kind.name + rest, point.all.fnr());
        if (point.all.fnr() < best.all.fnr()) best = point;
      }
    const bool holds = chosen.all.fnr() <= best.all.fnr() + kNearly;
    scores.nearly_best.count(holds);
    if (bits >= kFrom) scores.nearly_best_from_4.count(holds);
    if (bits >= kFrom && stream.gap == 0) scores.nearly_best_finite.count(holds);
    for (const auto& [definition, fnr] : missed)
      if (bits >= kFrom)
        rule.count(stream.gap > 0 ? 0 : bits, rate, definition, fnr <= best.all.fnr() + kNearly);
    if (!holds && bits >= kFrom)
      exceptions.push_back(line_of(stream, bits, best, &chosen, "a point fewer"));
  }
}

// The curve of a kind, without settings that others of the kind beat.
void draw(DataFile& data, const char* name, std::vector<Point> points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.all.fpr() != b.all.fpr() ? a.all.fpr() < b.all.fpr() : a.all.fnr() < b.all.fnr();
  });
  double least = 2;
  data.block(name);
  for (const Point& point : points) {
    if (point.all.fnr() >= least) continue;
    least = point.all.fnr();
    data.row({point.all.fpr(), least});
  }
}

// Kinds without columns in the table: those with importances, and those that guess.
bool is_shown(const ComparedKind& kind) {
  return std::strncmp(kind.name, "ibf", 3) != 0 && std::strcmp(kind.name, "fplru") != 0;
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
  BestRule rule;
  std::printf("%-16s %4s", "stream", "bits");
  for (const ComparedKind& kind : kinds)
    if (is_shown(kind)) std::printf(" %12s", kind.name);
  std::printf("\n");
  for (const ComparedStream& stream : streams) {
    DataFile data(arguments, "compare-" + stream.name, "FPR FNR");
    for (const double bits : kBits) {
      Runner runner(stream, bits);
      std::printf("%-16s %4.0f", stream.name.c_str(), bits);
      std::vector<Point> best_known, ours, autos;
      for (const ComparedKind& kind : kinds) {
        std::vector<Point> points;
        for (const std::string& options : kind.options)
          if (Point point; runner.run(kind, options, point)) points.push_back(point);
        if (kind.of_a_paper)
          for (const Point& point : points)
            judge(stream, bits, point, runner, scores, exceptions, autos);
        if (is_shown(kind)) std::printf(" %12s", rates(least_sum(points)).c_str());
        if (std::strcmp(kind.name, "rlbsbf") == 0) best_known = points;
        if (std::strcmp(kind.definition(), "clq") == 0 ||
            std::strcmp(kind.definition(), "vqf") == 0)
          ours.insert(ours.end(), points.begin(), points.end());
        draw(data, kind.name, points);
      }
      draw(data, "auto", autos);
      judge_lines(runner, scores);
      judge_best(stream, bits, runner, scores, exceptions, rule);
      if (stream.gap == 0)
        for (const Point& theirs : best_known) {
          const bool beaten = std::any_of(ours.begin(), ours.end(), [&](const Point& point) {
            return is_at_most_in_both(point.all, theirs.all);
          });
          (bits >= kFrom ? scores.rlbsbf : scores.rlbsbf_below_4).count(beaten);
          if (!beaten)
            exceptions.push_back(line_of(stream, bits, theirs, nullptr, "no clq, vqf below it"));
        }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  std::printf(
      "\nWhere a setting of a paper's kind is better than auto, or auto has more false positives\n"
      "than it was asked to:\n%-16s %4s  %-52s %13s %13s\n",
      "stream", "bits", "setting", "", "auto");
  for (const std::string& line : exceptions) std::printf("%s\n", line.c_str());
  std::printf("\n");
  print_score("asked for the rate at the end, auto keeps it, from 4 bits on:", scores.keeps);
  print_score("and misses fewer than the setting (or both none), from 4 bits on:", scores.fewer);
  print_score("and is not above the setting in both errors, from 4 bits on:",
              scores.not_both_from_4);
  print_score("and is not above the setting in both errors, from 1 bit on:", scores.not_both);
  print_score("asked for the rate over the whole stream, it misses fewer, from 4 bits on:",
              scores.fewer_whole);
  print_score("rlbsbf: some clq or vqf is below in both errors, finite, from 4 bits on:",
              scores.rlbsbf);
  print_score("rlbsbf: the same, below 4 bits:", scores.rlbsbf_below_4);
  print_score("two lines miss fewer than one (or none), where one misses up to 5 %:",
              scores.two_lines_few);
  print_score("the same, where one misses more:", scores.two_lines);
  print_score("auto is within a point of the kind that misses the fewest, from 4 bits on:",
              scores.nearly_best_from_4);
  print_score("of these, finite streams:", scores.nearly_best_finite);
  print_score("a rule by bits and fpr, made of these results, would be:",
              {rule.holds(), scores.nearly_best_from_4.all});
  print_score("auto, from 1 bit on:", scores.nearly_best);
  compare_importance(arguments.quick);
  std::printf("\ncompare: auto kept its rate in %u of %u cases\n", scores.keeps.holds,
              scores.keeps.all);
  return scores.keeps.holds == scores.keeps.all ? 0 : 1;
}
