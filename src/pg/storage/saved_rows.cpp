#include "pg/storage/saved_rows.hpp"

namespace streamfilter::pg {
namespace {

struct RolesRecord {
  std::uint64_t hash;
  double importance;
  std::int64_t time;
};
static_assert(sizeof(RolesRecord) == 24);

// By ChangeType; a space: it is never in the log.
constexpr char kLetters[] = "a ze  p    rhiu";
static_assert(sizeof kLetters - 1 == static_cast<std::size_t>(ChangeType::unknown));

}  // namespace

char letter_of(ChangeType change) { return kLetters[static_cast<std::size_t>(change)]; }

ChangeType change_of_letter(char letter) {
  const char* at = letter > ' ' ? std::strchr(kLetters, letter) : nullptr;
  return at != nullptr ? static_cast<ChangeType>(at - kLetters) : ChangeType::unknown;
}

std::size_t change_size(ChangeType change) {
  return change == ChangeType::roles || change == ChangeType::promote ? sizeof(RolesRecord)
                                                                      : sizeof(std::uint64_t);
}

void write_change(char* data, ChangeType change, const Element& element) {
  if (change_size(change) != sizeof(RolesRecord)) {
    std::memcpy(data, &element.hash, sizeof element.hash);
    return;
  }
  const RolesRecord record = {element.hash, element.importance, element.time};
  std::memcpy(data, &record, sizeof record);
}

std::uint64_t count_changes(const LogRow& row) {
  if (is_header(row.change)) return 0;
  return row.change == ChangeType::reset ? 1 : row.size / change_size(row.change);
}

LoggedChange logged_change_at(const LogRow& row, std::uint64_t position) {
  RolesRecord record{};
  const std::size_t size = change_size(row.change);
  if (row.change != ChangeType::reset) std::memcpy(&record, row.data + position * size, size);
  return {row.change, {record.hash, record.importance, record.time}};
}

bool is_sound(const LogRow& row) {
  switch (row.change) {
    case ChangeType::header:
    case ChangeType::image:
    case ChangeType::memory: return row.size >= sizeof(SavedHeader) + kStoredHeader;
    case ChangeType::reset: return row.size == 0;
    case ChangeType::add:
    case ChangeType::roles:
    case ChangeType::promote:
    case ChangeType::erase: return row.size > 0 && row.size % change_size(row.change) == 0;
    default: return false;
  }
}

std::int64_t sum_of(const ImageRow& row) {
  const std::uint64_t seed = static_cast<std::uint64_t>(row.image) ^
                             mix64(static_cast<std::uint64_t>(row.number)) ^
                             mix64(static_cast<std::uint64_t>(row.chunks) << 32);
  return static_cast<std::int64_t>(hash_bytes(row.data, row.size, seed));
}

const char* place_of_chunk(const ImageRow& row, Header* block, char** place) {
  const Parameters& parameters = block->parameters;
  const std::uint64_t per_slice = chunks_of(parameters.slice_bytes);
  const std::uint64_t index = static_cast<std::uint64_t>(row.number) - 1;
  if (row.number < 1 || index >= per_slice * parameters.slices)
    return "A chunk lies outside of the filter.";
  const std::uint64_t at = index % per_slice * kRowData;
  if (row.size != std::min<std::uint64_t>(kRowData, parameters.slice_bytes - at))
    return "A chunk has another size.";
  const Slice slice = slice_at(block, static_cast<std::uint32_t>(index / per_slice));
  *place = reinterpret_cast<char*>(slice.state) + at;
  return nullptr;
}

}  // namespace streamfilter::pg
