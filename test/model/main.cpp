// checker BINDIR DIRECTORY SECONDS SEED [DEFECT]: see README.md; run.sh calls it.
#include <cstdio>
#include <cstdlib>

#include "checker.hpp"

int main(int count, char** arguments) {
  if (count < 5) {
    fprintf(stderr, "usage: checker BINDIR DIRECTORY SECONDS SEED [DEFECT]\n");
    return 2;
  }
  checker::Options options;
  options.bindir = arguments[1];
  options.directory = arguments[2];
  options.seconds = atof(arguments[3]);
  options.seed = strtoull(arguments[4], nullptr, 10);
  if (count > 5) options.defect = arguments[5];
  checker::Checker checker(options);
  return checker.run() ? 0 : 1;
}
