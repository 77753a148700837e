// streamfilter_slices_needed: number of slices that can bear the loss of some.
#include "pg/server/postgres.hpp"

#include <cmath>

#include "core/base/saturate.hpp"
#include "core/model/slicing_model.hpp"

namespace streamfilter::pg {
namespace {

[[noreturn]] void raise_range(const char* argument, const char* range) {
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
          errmsg("argument \"%s\" of streamfilter_slices_needed is out of range", argument),
          errdetail("It must be %s.", range));
  pg_unreachable();
}

// A rate given by the caller; `missing` if it is NULL.
double read_rate(FunctionCallInfo fcinfo, int number, const char* name, double missing) {
  if (PG_ARGISNULL(number)) return missing;
  const double rate = PG_GETARG_FLOAT8(number);
  if (!(rate >= 0 && rate < 1)) raise_range(name, "at least 0 and less than 1");
  return rate;
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_slices_needed(lost integer, places integer, max_fpr float8, fpr float8, max_fnr
// float8) -> bigint: S_f of Definition 3 (Koloniari et al. 2011): the least number of slices that
// keeps one of the two bounds while `lost` of them are lost, for lost_slice 'duplicate' or
// 'distinct'. NULL: no number does.
SF_FUNCTION(streamfilter_slices_needed) {
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) PG_RETURN_NULL();
  const int lost = PG_GETARG_INT32(0);
  const int probes = PG_GETARG_INT32(1);
  const double max_fpr = read_rate(fcinfo, 2, "max_fpr", NAN);
  const double fpr = read_rate(fcinfo, 3, "fpr", 0);
  const double max_fnr = read_rate(fcinfo, 4, "max_fnr", NAN);
  if (lost < 1) raise_range("lost", "at least 1");
  if (probes < 1 || probes > 64) raise_range("places", "between 1 and 64");
  if (std::isnan(max_fpr) == std::isnan(max_fnr))
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("streamfilter_slices_needed needs one of \"max_fpr\" and \"max_fnr\""));
  const double slices = std::isnan(max_fnr)
                            ? slicing_model::slices_for_fpr(probes, fpr, lost, max_fpr)
                            : slicing_model::slices_for_fnr(probes, lost, max_fnr);
  if (!(slices < 9e18)) PG_RETURN_NULL();
  PG_RETURN_INT64(saturate<int64>(std::round(slices)));
}
