// DDL on a filter checks triggers of tables with other owners, too. It neither waits for those
// tables nor fails because of them.
#pragma once

namespace streamfilter::pg {

// Runs the check in a savepoint, and turns its error into a WARNING unless the error concerns the
// statement or the server.
void warn_instead(void (*check)(void* context), void* context);

}  // namespace streamfilter::pg
