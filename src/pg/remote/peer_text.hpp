// Text from another server, or from libpq about it, which may contain anything.
#pragma once

namespace streamfilter::pg {

// Length of text that is shown.
constexpr int kMaxPeerText = 2048;

// A copy that is valid in the database's encoding: invalid bytes and control characters become
// question marks, and long text is cut between characters. Allocates in the current context.
char* clean_peer_text(const char* text);

// The same, up to the end of the first line.
char* first_peer_line(const char* text);

// The SQLSTATE of five characters for ereport; `other` if it is none, or no error.
int read_sqlstate(const char* code, int other);

}  // namespace streamfilter::pg
