#include "pg/remote/wire_answers.hpp"

#include <cstring>

namespace streamfilter::pg {

bool AnswerSequence::take(Reply reply) {
  if (state_ == State::done) return false;
  const bool failed = state_ == State::failed;
  switch (reply) {
    case Reply::command: return !failed;
    case Reply::rows:
      if (failed || !awaits_rows_) return false;
      awaits_rows_ = false;
      state_ = State::answered;
      return true;
    case Reply::error:
      if (failed) return false;
      state_ = State::failed;
      return true;
    case Reply::skipped: return failed;
    case Reply::sync:
      if (awaits_rows_ && !failed) return false;
      state_ = State::done;
      return true;
    case Reply::other: return false;
  }
  return false;
}

// Takes `word` off the front.
static bool take_word(const char*& at, const char* end, const char* word) {
  const std::size_t length = std::strlen(word);
  if (static_cast<std::size_t>(end - at) < length || std::memcmp(at, word, length) != 0)
    return false;
  at += length;
  return true;
}

static bool take_answer(const char*& at, const char* end, bool may_be_taken, Answer& answer) {
  if (take_word(at, end, "t"))
    answer = Answer::yes;
  else if (take_word(at, end, "f"))
    answer = Answer::no;
  else if (may_be_taken && take_word(at, end, "NULL"))
    answer = Answer::taken;
  else
    return false;
  return true;
}

bool read_answers(const char* text, std::size_t length, bool may_be_taken, Answer* answers,
                  int count) {
  const char* at = text;
  const char* end = text + length;
  if (!take_word(at, end, "{")) return false;
  for (int i = 0; i < count; ++i)
    if ((i > 0 && !take_word(at, end, ",")) || !take_answer(at, end, may_be_taken, answers[i]))
      return false;
  return take_word(at, end, "}") && at == end;
}

bool read_flag(const char* text, std::size_t length, bool* flag) {
  if (length != 1 || (text[0] != 't' && text[0] != 'f')) return false;
  *flag = text[0] == 't';
  return true;
}

const char* find_sqlstate(const char* message) {
  for (const char* at = std::strstr(message, ":  "); at != nullptr;
       at = std::strstr(at + 1, ":  ")) {
    const char* code = at + 3;
    if (std::strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && code[5] == ':')
      return code;
  }
  return nullptr;
}

}  // namespace streamfilter::pg
