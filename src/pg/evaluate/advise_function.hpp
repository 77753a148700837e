// What both forms of streamfilter_advise are asked for, and answer.
#pragma once

#include "core/advise/advise.hpp"
#include "pg/server/named_row.hpp"

namespace streamfilter::pg {

// Raises 22023 for what is out of range.
Definition read_request(const char* memory, double fpr);

// Puts what does not depend on how the rates were found into a row. Returns the note about it.
const char* put_prototype(NamedRow& row, const Advice& advice, double distinct_rows);

}  // namespace streamfilter::pg
