// The default false-positive rate. It is written into a filter's options, so that the filter keeps
// it when the default changes.
#pragma once

#include "pg/server/postgres.hpp"

namespace streamfilter::pg {

// Call for a filter that CREATE has made or ALTER has changed: numbers of the kind that kept CREATE
// from writing a rate may be gone. A node of a tree takes its parent's rate. Raises 22023 if the
// filter cannot keep the rate and names nothing that overrides it; that is a WARNING where a dump
// may be restored.
void write_default_fpr(Oid relid);

}  // namespace streamfilter::pg
