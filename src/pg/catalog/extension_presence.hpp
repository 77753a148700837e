// Does this database have the extension?
#pragma once

namespace streamfilter::pg {

// Also true if that cannot be found out now, and once true, true for the session. Costs one
// comparison, unless a wrapper was made or dropped since the last call.
bool is_extension_here();

}  // namespace streamfilter::pg
