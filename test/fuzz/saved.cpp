// What is saved of a filter: a definition, up to the first zero byte, then rows of its image and of
// its log. Chunks go to their places; what `check` then lets in takes the changes of the log and
// stays so.
#include "pg/storage/saved_rows.hpp"

#include <algorithm>

#include "fuzz/filters.hpp"

namespace fuzz {
namespace {

using namespace streamfilter::pg;

struct RowHead {
  std::uint8_t sort;  // 'c' of a chunk; else what a row of the log is
  std::uint8_t reserved;
  std::uint16_t size;
  std::int32_t number;
};

void place(const RowHead& head, const char* data, Block& block) {
  const ImageRow row{0, 0, head.number, 0, 0, 0, data, head.size};
  sum_of(row);
  char* place;
  if (place_of_chunk(row, block.header(), &place) == nullptr) memcpy(place, row.data, row.size);
}

void apply(const RowHead& head, const char* data, Block& block) {
  const LogRow row{0, change_of_letter(static_cast<char>(head.sort)), 0, 0, data, head.size};
  if (!is_sound(row)) return;
  for (std::uint64_t i = 0; i < count_changes(row); ++i) {
    const LoggedChange it = logged_change_at(row, i);
    switch (it.change) {
      case ChangeType::add:
      case ChangeType::roles: insert_new(block.header(), it.element); break;
      case ChangeType::promote: {
        unsigned rank;
        promote(block.header(), it.element, rank);
        break;
      }
      case ChangeType::erase:
        if (ops_of(block.header()).erase != nullptr) erase(block.header(), it.element);
        break;
      default: format(block.header(), Parameters(block.header()->parameters));
    }
  }
}

// Calls `use` for each row of the chunks, or of the log.
template <typename Use>
void each_row(Input input, bool chunks, const Use& use) {
  while (input.left() >= sizeof(RowHead)) {
    auto head = input.take<RowHead>();
    head.size =
        static_cast<std::uint16_t>(std::min({input.left(), std::size_t{head.size}, kRowData}));
    // In memory of its own, so that a sanitizer sees any access beyond it.
    const std::vector<char> data(input.rest(), input.rest() + head.size);
    input.skip(head.size);
    if ((head.sort == 'c') == chunks) use(head, data.data());
  }
}

}  // namespace
}  // namespace fuzz

void fuzz::saved(const std::uint8_t* data, std::size_t size) {
  const auto* text = reinterpret_cast<const char*>(data);
  const std::size_t length = strnlen(text, size);
  Parameters parameters;
  if (!read_definition(text, length, parameters) || parameters.memory > kMostMemory) return;
  Block block(block_bytes(parameters));
  format_header(block.header(), parameters);
  Input rows(data, size);
  rows.skip(length + 1);
  each_row(rows, true, [&](const RowHead& head, const char* bytes) { place(head, bytes, block); });
  if (!is_valid(block)) format(block.header(), parameters);
  each_row(rows, false, [&](const RowHead& head, const char* bytes) { apply(head, bytes, block); });
  FUZZ_REQUIRE(is_valid(block));
  use(block);
}
