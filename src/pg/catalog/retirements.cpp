#include "pg/server/postgres.hpp"

#include "pg/catalog/option_list.hpp"
#include "pg/catalog/retirements.hpp"

namespace streamfilter::pg {
namespace {

bool take_count(const char** at, uint32* number, uint32 least) {
  return take_number(at, number) && *number >= least && *number <= PG_INT32_MAX;
}

}  // namespace

bool read_retired_servers(const char* text, RetiredServers* result) {
  int count = 1;
  for (const char* at = text; *at != '\0'; ++at) count += *at == ',';
  auto* numbers = static_cast<uint32*>(palloc(sizeof(uint32) * static_cast<Size>(count)));
  const char* at = text;
  for (int i = 0; i < count; ++i) {
    if (!take_count(&at, &numbers[i], 1) || *at != (i == count - 1 ? '\0' : ',')) return false;
    if (*at != '\0') ++at;
    while (*at == ' ') ++at;
  }
  *result = {numbers, count};
  return true;
}

bool read_retirements(const char* text, Retirements* result) {
  const Size length = strlen(text);
  uint32 server;
  result->of_copy = length > 0 && text[length - 1] == '?';
  result->text = pnstrdup(text, length - result->of_copy);
  const char* at = result->text;
  if (!take_count(&at, &result->count, 0)) return false;
  if (*at == '\0') return true;
  if (*at++ != ':' || !take_count(&at, &server, 1)) return false;
  return at[0] == ':' && at[1] != '\0';
}

RetiredServers retired_servers_in(List* options) {
  const char* text = find_option(options, "retired");
  RetiredServers result;
  return text != nullptr && read_retired_servers(text, &result) ? result : RetiredServers();
}

Retirements retirements_in(List* options) {
  const char* text = find_option(options, "retirements");
  Retirements result;
  return text != nullptr && read_retirements(text, &result) ? result : Retirements();
}

bool is_current(const Retirements& known, const Retirements& told) {
  if (told.count != known.count) return told.count > known.count;
  return told.text == nullptr || strchr(told.text, ':') == nullptr ||
         strcmp(told.text, known.text) == 0;
}

}  // namespace streamfilter::pg
