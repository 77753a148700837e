// Memory for what a transaction has changed: the backend's own, up to work_mem for all its logs
// together; beyond that the pages of temporary files, which the system can write out. They are
// mapped, and the files deleted at once, so nothing of them can fail after the commit record.
#pragma once

extern "C" {
#include "utils/palloc.h"
}

namespace streamfilter::pg {

// `context` is the transaction's: what was allocated goes with it. Raises 53200; 53100 and 53400
// (temp_file_limit) where there is no room for a file.
void* allocate_for_log(MemoryContext context, Size bytes);
void free_for_log(void* memory, Size bytes);

// The transaction's logs are not looked at any more. Cannot raise.
void release_log_memory();

}  // namespace streamfilter::pg
