// A client may send nothing for hours, in the middle of a COPY or before the Sync that commits.
// Until then others must not wait for filters that its statement has for itself.
#pragma once

namespace streamfilter::pg {

// Hands them over, unless the client sends something soon.
void hand_over_if_client_pauses();

// The same behind a statement, unless Sync follows.
void hand_over_behind_statement();

}  // namespace streamfilter::pg
