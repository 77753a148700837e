// The settings (GUCs) of the extension.
#pragma once

namespace streamfilter::pg {

extern int shared_memory_kb;  // streamfilter.shared_memory
extern int max_filters;       // streamfilter.max_filters
extern int max_in_flight;     // streamfilter.max_in_flight
extern bool enabled;          // streamfilter.enabled
extern bool batch_scan;       // streamfilter.batch_scan

// Called by _PG_init. Never raises.
void init_settings();

}  // namespace streamfilter::pg
