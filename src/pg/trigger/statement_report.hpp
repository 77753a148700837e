// What streamfilter.report says after a statement.
#pragma once

namespace streamfilter::pg {

// A statement that no other has called begins, or has ended well. The latter may raise what sending
// a message can raise.
void begin_statement_report();
void end_statement_report();

}  // namespace streamfilter::pg
