// Lines of COPY that hold values and delimiters and nothing else: no escape, no quote, no carriage
// return. COPY looks at each of their characters twice; here memchr() finds the few that matter.
// All other lines, and whatever is wrong with one, are left to COPY.
#pragma once

extern "C" {
#include "commands/copyfrom_internal.h"
}

namespace streamfilter::pg {

// Has the format such lines, with the options that were given?
bool has_plain_lines(const CopyFromStateData* copy);

// As NextCopyFrom(), for formats that have such lines. False: the next line is not plain, or not
// all of it is in the buffer, or there is none; nothing was read.
bool read_plain_line(CopyFromState copy, ExprContext* context, Datum* values, bool* nulls);

}  // namespace streamfilter::pg
