// The rows of the two heaps with the state of logged filters, as bytes: their meaning, and whether
// they can be sound. Does not need PostgreSQL.
//
// The log has one or more rows per transaction. An image is cut into rows: row 0 is the header;
// then come the slices in order, each in chunks of kRowData bytes, the last one shorter.
#pragma once

#include "core/filter/packed_header.hpp"
#include "pg/shmem/change_type.hpp"

namespace streamfilter::pg {

// Maximum of data bytes in a row: a row fills a page.
constexpr std::size_t kRowData = 7936;

// What a row of the log says, by its letter there; `unknown` has none.
char letter_of(ChangeType change);
ChangeType change_of_letter(char letter);

inline bool is_header(ChangeType change) {
  return change >= ChangeType::header && change <= ChangeType::memory;
}

// The data of a header's row begin with this; behind it come a packed header and the keys'
// collations (saved_definition.hpp).
struct SavedHeader {
  std::uint64_t columns;  // FilterSlot::key_signature
  std::int64_t former;    // a life whose rows in the log are of this one, too; 0: none
};
static_assert(sizeof(SavedHeader) == 16);

struct LogRow {
  std::uint32_t filter;  // its OID
  ChangeType change;
  std::int64_t number;    // ascends with time, for one filter
  std::int64_t identity;  // rows of another one belong to another life of the filter
  const char* data;
  std::size_t size;
};

struct ImageRow {
  std::uint32_t filter;
  std::int32_t chunks;  // of the whole image
  std::int32_t number;  // of this chunk, from 0
  std::int64_t sum;     // checksum
  std::int64_t image;   // equal for the chunks of one image
  std::int64_t saved;   // a timestamp
  const char* data;
  std::size_t size;
};

// ---- the log

// Can this be a row? If so, its changes can be read one by one.
bool is_sound(const LogRow& row);
std::uint64_t count_changes(const LogRow& row);
struct LoggedChange {
  ChangeType change;
  Element element;
};
LoggedChange logged_change_at(const LogRow& row, std::uint64_t position);

// Bytes of one change, and writing it there.
std::size_t change_size(ChangeType change);
void write_change(char* data, ChangeType change, const Element& element);

// ---- an image

inline std::uint64_t chunks_of(std::uint64_t slice_bytes) {
  return (slice_bytes + kRowData - 1) / kRowData;
}

// Checksum of a chunk and its place.
std::int64_t sum_of(const ImageRow& row);

// The place of a chunk in a block of these parameters. What is wrong with it, as a sentence;
// nullptr: nothing.
const char* place_of_chunk(const ImageRow& row, Header* block, char** place);

}  // namespace streamfilter::pg
