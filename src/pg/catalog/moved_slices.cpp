#include "pg/catalog/moved_slices.hpp"

extern "C" {
#include "lib/stringinfo.h"
}

#include "pg/catalog/option_list.hpp"

namespace streamfilter::pg {
namespace {

// Reads a number and the character behind it.
bool take_number_before(const char** at, char end, uint32* number) {
  if (!take_number(at, number) || **at != end) return false;
  if (end != '\0') ++*at;
  return true;
}

bool take_entry(const char** at, MovedSlice* entry, bool is_last) {
  uint32 server;
  if (!take_number_before(at, ':', &entry->slice) || !take_number_before(at, '@', &server) ||
      !take_number_before(at, is_last ? '\0' : ',', &entry->epoch) || server == 0 ||
      entry->epoch == 0)
    return false;
  while (**at == ' ') ++*at;
  entry->server = server - 1;
  return true;
}

bool is_ordered(const MovedSlices& list) {
  for (int i = 1; i < list.count; ++i)
    if (list.entries[i].slice <= list.entries[i - 1].slice) return false;
  return true;
}

}  // namespace

bool read_made_places(const char* text, MovedSlices* result) {
  int count = 1;
  for (const char* at = text; *at != '\0'; ++at) count += *at == ',';
  auto* entries = static_cast<MovedSlice*>(palloc(sizeof(MovedSlice) * static_cast<Size>(count)));
  const char* at = text;
  for (int i = 0; i < count; ++i)
    if (!take_entry(&at, &entries[i], i == count - 1)) return false;
  *result = {entries, count};
  return true;
}

bool read_moved_slices(const char* text, MovedSlices* result) {
  return read_made_places(text, result) && is_ordered(*result);
}

const MovedSlice* find_moved_slice(const MovedSlices& moved, uint32 slice) {
  int low = 0, high = moved.count;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (moved.entries[middle].slice == slice) return &moved.entries[middle];
    (moved.entries[middle].slice < slice ? low : high) =
        middle + (moved.entries[middle].slice < slice);
  }
  return nullptr;
}

const char* add_moved_slice(const MovedSlices& moved, const MovedSlice& entry) {
  StringInfoData text;
  initStringInfo(&text);
  const auto append = [&](const MovedSlice& one) {
    appendStringInfo(&text, "%s%u:%u@%u", text.len > 0 ? ", " : "", one.slice, one.server + 1,
                     one.epoch);
  };
  int i = 0;
  while (i < moved.count && moved.entries[i].slice < entry.slice) append(moved.entries[i++]);
  append(entry);
  if (i < moved.count && moved.entries[i].slice == entry.slice) ++i;
  while (i < moved.count) append(moved.entries[i++]);
  return text.data;
}

const char* name_of_moved_slice(const char* filter, uint32 slice, uint32 epoch) {
  const char* name = psprintf("%s/%u@%u", filter, slice, epoch);
  if (strlen(name) >= NAMEDATALEN)
    ereport(ERROR, errcode(ERRCODE_NAME_TOO_LONG),
            errmsg("name \"%s\" of a slice that has moved is too long", name),
            errhint("Give the filter a shorter name."));
  return name;
}

}  // namespace streamfilter::pg
