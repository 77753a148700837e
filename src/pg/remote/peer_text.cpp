#include "pg/server/postgres.hpp"

extern "C" {
#include "mb/pg_wchar.h"
}

#include "pg/remote/peer_text.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kReplacement = '?';
constexpr char kCodeCharacters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < ' ' && c != '\n' && c != '\t') || byte == 0x7f;
}

char* clean(const char* text, Size length) {
  const int encoding = GetDatabaseEncoding();
  auto* result = static_cast<char*>(palloc(kMaxPeerText + 1));
  int used = 0;
  for (const char *at = text, *end = text + length; at < end;) {
    const int rest = static_cast<int>(Min(end - at, MAX_MULTIBYTE_CHAR_LEN));
    const int valid = pg_encoding_verifymbchar(encoding, at, rest);
    const int width = Max(valid, 1);
    if (used + width > kMaxPeerText) break;
    if (valid < 1 || is_control(*at))
      result[used] = kReplacement;
    else
      memcpy(result + used, at, static_cast<Size>(width));
    used += width;
    at += width;
  }
  result[used] = '\0';
  return result;
}

}  // namespace

char* clean_peer_text(const char* text) { return clean(text, strlen(text)); }

char* first_peer_line(const char* text) { return clean(text, strcspn(text, "\n")); }

int read_sqlstate(const char* code, int other) {
  if (code == nullptr || strlen(code) != 5 || strspn(code, kCodeCharacters) != 5) return other;
  const bool is_error =
      strncmp(code, "00", 2) != 0 && strncmp(code, "01", 2) != 0 && strncmp(code, "02", 2) != 0;
  return is_error ? MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4]) : other;
}

}  // namespace streamfilter::pg
