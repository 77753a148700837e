#include "pg/server/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
}

#include "pg/handle/judged_report.hpp"

namespace streamfilter::pg {

bool collects_judged_rows = false;

namespace {

constexpr int kMaxFilters = 32;
JudgedRows judged[kMaxFilters];
int count = 0;

void append(StringInfo text, uint64 rows, const char* what) {
  if (rows == 0) return;
  const char* unit = rows == 1 ? " row" : " rows";
  const bool first = text->len == 0;
  appendStringInfo(text, "%s%llu%s %s", first ? "" : ", ", static_cast<unsigned long long>(rows),
                   first ? unit : "", what);
}

}  // namespace

void add_judged_rows(const JudgedRows& more) {
  int i = 0;
  while (i < count && judged[i].filter != more.filter) ++i;
  if (i == kMaxFilters) return;
  if (i == count) judged[count++] = {more.filter, 0, {}};
  judged[i].rows += more.rows;
  for (int outcome = 0; outcome < kOutcomes; ++outcome)
    judged[i].repeats[outcome] += more.repeats[outcome];
}

void collect_judged_rows(bool wanted) {
  collects_judged_rows = wanted;
  count = 0;
}

int judged_filters() { return count; }
const JudgedRows& judged_by(int i) { return judged[i]; }

const char* describe_judged_rows(const JudgedRows& rows) {
  StringInfoData text;
  initStringInfo(&text);
  for (int outcome = 0; outcome < kOutcomes; ++outcome)
    append(&text, rows.repeats[outcome], kWordsOf[outcome]);
  if (text.len == 0) return nullptr;
  return psprintf("%s, of %llu judged", text.data, static_cast<unsigned long long>(rows.rows));
}

}  // namespace streamfilter::pg
