#include "pg/storage/saved_rows.hpp"

namespace streamfilter::pg {
namespace {

struct RolesRecord {
  std::uint64_t hash;
  double importance;
  std::int64_t time;
};
static_assert(sizeof(RolesRecord) == 24);

}  // namespace

std::size_t change_size(LogChange change) {
  return change == LogChange::roles ? sizeof(RolesRecord) : sizeof(std::uint64_t);
}

void write_change(char* data, LogChange change, const Element& element) {
  if (change != LogChange::roles) {
    std::memcpy(data, &element.hash, sizeof element.hash);
    return;
  }
  const RolesRecord record = {element.hash, element.importance, element.time};
  std::memcpy(data, &record, sizeof record);
}

std::uint64_t count_changes(const LogRow& row) {
  if (is_header(row.change) || row.change == LogChange::collations) return 0;
  return row.change == LogChange::reset ? 1 : row.size / change_size(row.change);
}

LoggedChange logged_change_at(const LogRow& row, std::uint64_t position) {
  RolesRecord record{};
  const std::size_t size = change_size(row.change);
  if (row.change != LogChange::reset) std::memcpy(&record, row.data + position * size, size);
  return {row.change, {record.hash, record.importance, record.time}};
}

bool is_sound(const LogRow& row) {
  switch (row.change) {
    case LogChange::header:
    case LogChange::image: return row.size == sizeof(Header);
    case LogChange::reset: return row.size == 0;
    case LogChange::collations: return row.size > 0;
    case LogChange::add:
    case LogChange::roles:
    case LogChange::erase: return row.size > 0 && row.size % change_size(row.change) == 0;
  }
  return false;
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
