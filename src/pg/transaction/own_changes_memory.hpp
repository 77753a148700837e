// Memory for a transaction's changes: the backend's own, up to work_mem for all its logs together;
// beyond that mapped temporary files, which the system can page out. The files are deleted at once,
// so nothing can fail after the commit record.
#pragma once

namespace streamfilter::pg {

// Freed with the transaction's memory. Raises 53200; 53100 and 53400 (temp_file_limit) if there is
// no room for a file.
void* allocate_for_log(Size bytes);
void free_for_log(void* memory, Size bytes);

// Call when the transaction's logs are no longer read. Cannot raise.
void release_log_memory();

}  // namespace streamfilter::pg
