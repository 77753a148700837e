// The trigger functions streamfilter_discard and streamfilter_mark.
#pragma once

extern "C" {
#include "nodes/parsenodes.h"
}

namespace streamfilter::pg {

// If the trigger just created executes one of the two, raises whatever it would raise for every
// row, so that a mistake shows at once. Needs neither preloading nor shared memory. A missing right
// is only warned of: a dump grants rights after it has created triggers.
void check_created_trigger(const CreateTrigStmt* statement);

}  // namespace streamfilter::pg
