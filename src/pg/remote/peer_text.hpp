// Text that another server, or libpq for it, has written: it may be anything.
#pragma once

namespace streamfilter::pg {

// How much of one text is shown.
constexpr int kMaxPeerText = 2048;

// A copy that is valid in the encoding of the database: bytes that are not, and control characters,
// become question marks, and what is too long is cut between characters. Allocates in the current
// context.
char* clean_peer_text(const char* text);

// The same up to the end of the first line.
char* first_peer_line(const char* text);

// The SQLSTATE of five characters as ereport has it; `other` if it is none, or no error.
int read_sqlstate(const char* code, int other);

}  // namespace streamfilter::pg
