// An owner's DDL looks at tables of others, too, whose triggers use his filter: it neither waits
// for them nor fails because of them.
#pragma once

namespace streamfilter::pg {

// Runs the check in a savepoint of its own; what it raises is a WARNING instead, unless it is about
// the statement or the server themselves.
void warn_instead(void (*check)(void* context), void* context);

}  // namespace streamfilter::pg
