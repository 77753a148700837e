#include "pg/server/postgres.hpp"

#include "pg/trigger/judged_once.hpp"

namespace streamfilter::pg {

void raise_asked_twice(const FilterHandle* filter) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
          errdetail("Rules have made several queries of the statement, and each gives the filter "
                    "the same keys; from the second on, all would be repeats."),
          errhint("Put what is new into a temporary table first, or use a trigger in place of the "
                  "rule."));
  pg_unreachable();
}

}  // namespace streamfilter::pg
