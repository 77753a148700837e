// Reads answers of other servers without trust: which kinds of results may come when, the shape of
// their rows, and their contents. Knows neither PostgreSQL nor libpq, allocates nothing, and takes
// any bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace streamfilter::pg {

// A server's answer for a hash; `taken`: another transaction has reserved it.
enum class Answer : char { no = 'f', yes = 't', taken = 'N' };

// ---- which results may come ---------------------------------------------------------------------

// Kinds of results that matter here.
enum class Reply : std::uint8_t {
  command,  // done, without rows
  rows,     // done, with all of its rows
  error,    // of the server, which continues after it
  skipped,  // a command behind a failed one
  sync,     // the end
  other,    // COPY, a single row, an empty query, an unreadable message, and what future versions
            // bring
};

// Where the answers to what was sent together stand. Any number of commands answer without rows;
// one of them, if rows are awaited, answers with rows; after an error all are skipped. Then comes
// the end:
//
//   | before      | command | rows     | error  | skipped | sync   | other  |
//   |-------------|---------|----------|--------|---------|--------|--------|
//   | open        | open    | answered | failed | refuse  | done*  | refuse |
//   | answered    | open    | refuse   | failed | refuse  | done   | refuse |
//   | failed      | refuse  | refuse   | refuse | failed  | done   | refuse |
//   | done        | refuse  | refuse   | refuse | refuse  | refuse | refuse |
//
//   * refuse, while rows are awaited
class AnswerSequence {
 public:
  explicit AnswerSequence(bool awaits_rows) : awaits_rows_(awaits_rows) {}

  // False: the reply must not come now.
  bool take(Reply reply);
  bool is_done() const { return state_ == State::done; }

 private:
  enum class State : std::uint8_t { open, answered, failed, done };
  State state_ = State::open;
  bool awaits_rows_;
};

// ---- what rows look like ------------------------------------------------------------------------

struct ColumnShape {
  std::uint32_t type;  // OID
  bool binary;
  bool nullable;
  std::size_t max_length;
};

struct RowShape {
  const ColumnShape* columns;
  int column_count;
  int min_rows, max_rows;
  std::uint64_t limit = UINT64_MAX;  // bytes of all rows, if fewer than the columns allow

  // Bytes of all rows as they travel.
  constexpr std::uint64_t max_bytes() const {
    constexpr std::uint64_t kRowHead = 7, kLength = 4;
    std::uint64_t row = kRowHead;
    for (int i = 0; i < column_count; ++i) row += kLength + columns[i].max_length;
    const std::uint64_t all = row * static_cast<std::uint64_t>(max_rows);
    return all < limit ? all : limit;
  }
};

// Types of extensions have another OID in every database.
constexpr std::uint32_t kAnyType = 0;

// Compares a result with a shape. Table has rows(), columns(), type(column), is_binary(column),
// is_null(row, column) and length(row, column), which may be negative.
template <typename Table>
bool has_shape(const Table& table, const RowShape& shape) {
  if (table.columns() != shape.column_count || table.rows() < shape.min_rows ||
      table.rows() > shape.max_rows)
    return false;
  for (int i = 0; i < shape.column_count; ++i) {
    const ColumnShape& column = shape.columns[i];
    if ((column.type != kAnyType && table.type(i) != column.type) ||
        table.is_binary(i) != column.binary)
      return false;
    for (int row = 0; row < table.rows(); ++row) {
      if (table.is_null(row, i) ? !column.nullable
                                : table.length(row, i) < 0 || static_cast<std::size_t>(table.length(
                                                                  row, i)) > column.max_length)
        return false;
    }
  }
  return true;
}

// ---- what stands in them ------------------------------------------------------------------------

// Length of the longest text for `count` answers.
constexpr std::size_t max_answers_length(int count) {
  return 2 + 5 * static_cast<std::size_t>(count);
}

// Reads the text form of boolean[], {t,f,NULL}, with exactly `count` elements; NULL only if `taken`
// is allowed.
bool read_answers(const char* text, std::size_t length, bool may_be_taken, Answer* answers,
                  int count);

// The text form of boolean.
bool read_flag(const char* text, std::size_t length, bool* flag);

// The SQLSTATE in a libpq message about a refused connection, "FATAL:  28P01: ..." in any language,
// if libpq is verbose. nullptr: no server has answered.
const char* find_sqlstate(const char* message);

}  // namespace streamfilter::pg
