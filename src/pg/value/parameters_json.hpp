// Parameters as JSON, for streamfilter_info and streamfilter_stats.
#pragma once

#include "core/format/parameters.hpp"

extern "C" {
struct StringInfoData;
}

namespace streamfilter::pg {

// Appends the kind's parameters as a JSON object: {"max": 1, "k": 3, …}. `reason` says why the kind
// was chosen, `derived_now` what this version derives if another had derived the parameters;
// nullptr: nothing.
void append_parameters_json(StringInfoData* out, const Parameters& parameters,
                            const char* reason = nullptr, const Parameters* derived_now = nullptr);

// Parses JSON text into a jsonb datum.
Datum json_to_jsonb(const char* json);

}  // namespace streamfilter::pg
