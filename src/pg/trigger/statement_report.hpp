// What streamfilter.report says after a statement.
#pragma once

namespace streamfilter::pg {

// Call at the start, and at the successful end, of a top-level statement. The latter may raise what
// sending a message can raise.
void begin_statement_report();
void end_statement_report();

}  // namespace streamfilter::pg
