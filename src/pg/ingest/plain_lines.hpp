// Lines of COPY with only values and delimiters: no escapes, quotes or carriage returns. COPY looks
// at each of their characters twice; memchr() finds the few that matter. All other lines, and all
// errors, are left to COPY.
#pragma once

extern "C" {
#include "commands/copyfrom_internal.h"
}

namespace streamfilter::pg {

// Can the format, with these options, have such lines?
bool has_plain_lines(const CopyFromStateData* copy);

// Like NextCopyFrom(), for formats with plain lines. False: the next line is not plain, or not
// completely in the buffer, or there is none; then nothing was read.
bool read_plain_line(CopyFromState copy, ExprContext* context, Datum* values, bool* nulls);

}  // namespace streamfilter::pg
