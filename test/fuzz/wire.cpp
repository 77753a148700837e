// What another server answers: the order of its results, the shape of their rows, and the texts in
// them.
#include "pg/remote/wire_answers.hpp"

#include <string>
#include <vector>

#include "fuzz/target.hpp"

namespace fuzz {
namespace {

using namespace streamfilter::pg;

// Any number of commands, at most one with rows, an error behind which all is skipped, the end.
void take_replies(Input& input) {
  const bool awaits_rows = (input.take<std::uint8_t>() & 1) != 0;
  AnswerSequence sequence(awaits_rows);
  unsigned rows = 0, errors = 0;
  for (unsigned count = input.take<std::uint8_t>(); count > 0 && !sequence.is_done(); --count) {
    const auto reply = static_cast<Reply>(input.take<std::uint8_t>() % 6);
    if (!sequence.take(reply)) continue;
    FUZZ_REQUIRE(reply != Reply::other);
    FUZZ_REQUIRE(reply != Reply::skipped || errors > 0);
    rows += reply == Reply::rows;
    errors += reply == Reply::error;
  }
  FUZZ_REQUIRE(rows <= awaits_rows && errors <= 1);
  if (!sequence.is_done()) return;
  FUZZ_REQUIRE(rows == awaits_rows || errors == 1);
  for (unsigned reply = 0; reply < 6; ++reply)
    FUZZ_REQUIRE(!sequence.take(static_cast<Reply>(reply)));
}

// A table of small numbers, as the input has them.
struct Table {
  explicit Table(Input& input)
      : rows_(input.take<std::int8_t>() % 4), columns_(input.take<std::int8_t>() % 4) {
    for (Cell& cell : cells_) cell = input.take<Cell>();
  }

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  std::uint32_t type(int column) const { return at(0, column).type; }
  bool is_binary(int column) const { return at(0, column).flags & 1; }
  bool is_null(int row, int column) const { return at(row, column).flags & 2; }
  int length(int row, int column) const { return at(row, column).length; }

 private:
  struct Cell {
    std::int32_t length;
    std::uint8_t type, flags;
  };

  const Cell& at(int row, int column) const {
    FUZZ_REQUIRE(row >= 0 && row < 4 && column >= 0 && column < 4);
    return cells_[row * 4 + column];
  }

  int rows_, columns_;
  Cell cells_[16];
};

void compare_shapes(Input& input) {
  static constexpr ColumnShape kColumns[] = {{16, false, false, 1}, {kAnyType, true, true, 64}};
  static constexpr RowShape kShapes[] = {
      {kColumns, 1, 1, 1}, {kColumns, 2, 0, 3}, {nullptr, 0, 0, 0}};
  const Table table(input);
  for (const RowShape& shape : kShapes) {
    if (!has_shape(table, shape)) continue;
    FUZZ_REQUIRE(table.columns() == shape.column_count);
    FUZZ_REQUIRE(table.rows() >= shape.min_rows && table.rows() <= shape.max_rows);
    for (int row = 0; row < table.rows(); ++row)
      for (int i = 0; i < table.columns(); ++i)
        FUZZ_REQUIRE(table.is_null(row, i) ? shape.columns[i].nullable
                                           : table.length(row, i) >= 0 &&
                                                 table.length(row, i) <=
                                                     static_cast<int>(shape.columns[i].max_length));
  }
}

// What is read is what such answers are printed as, to the last byte.
void read_texts(Input& input) {
  const bool may_be_taken = (input.take<std::uint8_t>() & 1) != 0;
  std::vector<Answer> answers(input.take<std::uint8_t>() % 70);
  const std::vector<char> text(input.rest(), input.rest() + input.left());
  const int count = static_cast<int>(answers.size());
  if (read_answers(text.data(), text.size(), may_be_taken, answers.data(), count)) {
    std::string printed = "{";
    for (const Answer answer : answers) {
      FUZZ_REQUIRE(answer == Answer::no || answer == Answer::yes || may_be_taken);
      printed += printed.size() > 1 ? "," : "";
      printed += answer == Answer::taken ? "NULL" : std::string(1, static_cast<char>(answer));
    }
    FUZZ_REQUIRE(printed + "}" == std::string(text.begin(), text.end()));
    FUZZ_REQUIRE(text.size() <= max_answers_length(count));
  }
  bool flag;
  if (read_flag(text.data(), text.size(), &flag)) FUZZ_REQUIRE(text[0] == (flag ? 't' : 'f'));
  const std::string message(text.begin(), text.end());
  if (const char* code = find_sqlstate(message.c_str()); code != nullptr)
    FUZZ_REQUIRE(code + 5 < message.c_str() + message.size());
}

}  // namespace
}  // namespace fuzz

void fuzz::wire(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto part = input.take<std::uint8_t>();
  switch (part % 3) {
    case 0: take_replies(input); break;
    case 1: compare_shapes(input); break;
    default: read_texts(input);
  }
}
