/*
 * Builds a filter outside of the server from rows on standard input, and writes its form:
 *
 *   build_filter DEFINITION TYPES text|binary
 *
 * A row is a line, its columns are separated by tabs, \N is NULL. TYPES says what they are,
 * separated by commas: integer, real, numeric, text, hex, interval (months:days:microseconds),
 * integers (an array, separated by commas), importance, time (microseconds since 1970).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streamfilter/streamfilter.h"

enum { max_columns = 32, max_line = 1 << 16 };

static void fail(const char* what, const sflt_problem* problem) {
  fprintf(stderr, "%s: %s %s %s\n", what, problem->message, problem->detail, problem->hint);
  exit(1);
}

static size_t split(char* text, char separator, char** parts) {
  size_t count = 0;
  for (char* at = text; at != NULL && count < max_columns; ++count) {
    parts[count] = at;
    at = strchr(at, separator);
    if (at != NULL) *at++ = '\0';
  }
  return count;
}

static uint64_t hash_hex(const char* text, uint64_t seed) {
  static unsigned char bytes[max_line];
  size_t count = 0;
  unsigned byte;
  for (; sscanf(text, "%2x", &byte) == 1; text += 2) bytes[count++] = (unsigned char)byte;
  return sflt_hash_bytes(bytes, count, seed);
}

static uint64_t hash_integers(char* text, uint64_t seed) {
  char* parts[max_columns];
  uint64_t hashes[max_columns];
  const size_t count = *text == '\0' ? 0 : split(text, ',', parts);
  for (size_t i = 0; i < count; ++i)
    hashes[i] = sflt_hash_integer(strtoll(parts[i], NULL, 10), seed);
  return sflt_hash_array(hashes, count, seed);
}

static uint64_t hash_interval(const char* text, uint64_t seed) {
  int months, days;
  long long microseconds;
  if (sscanf(text, "%d:%d:%lld", &months, &days, &microseconds) != 3) exit(2);
  return sflt_hash_interval(months, days, microseconds, seed);
}

static uint64_t hash_column(const char* type, char* text, uint64_t seed) {
  sflt_problem problem;
  uint64_t hash = 0;
  if (strcmp(text, "\\N") == 0) return sflt_hash_null(seed);
  if (strcmp(type, "integer") == 0) return sflt_hash_integer(strtoll(text, NULL, 10), seed);
  if (strcmp(type, "real") == 0) return sflt_hash_real(strtod(text, NULL), seed);
  if (strcmp(type, "text") == 0) return sflt_hash_bytes(text, strlen(text), seed);
  if (strcmp(type, "hex") == 0) return hash_hex(text, seed);
  if (strcmp(type, "interval") == 0) return hash_interval(text, seed);
  if (strcmp(type, "integers") == 0) return hash_integers(text, seed);
  if (strcmp(type, "numeric") != 0) exit(2);
  if (sflt_hash_numeric(text, strlen(text), seed, &hash, &problem) != SFLT_OK) fail(text, &problem);
  return hash;
}

/* Inserts a row, unless a NULL makes it have no key. */
static void insert_row(sflt_filter* filter, const sflt_definition* definition, char** types,
                       char** columns, size_t count) {
  const unsigned traits = sflt_traits(definition);
  const uint64_t seed = sflt_seed(definition);
  uint64_t hashes[max_columns];
  size_t keys = 0;
  sflt_element element = {0, 0, 0};
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(types[i], "importance") == 0) {
      element.importance = strtod(columns[i], NULL);
    } else if (strcmp(types[i], "time") == 0) {
      element.time = strtoll(columns[i], NULL, 10);
    } else {
      if (strcmp(columns[i], "\\N") == 0 && !(traits & SFLT_NULLS_NOT_DISTINCT)) return;
      hashes[keys++] = hash_column(types[i], columns[i], seed);
    }
  }
  element.hash = traits & SFLT_TAKES_INTEGERS
                     ? sflt_key_integer(definition, strtoll(columns[0], NULL, 10))
                     : sflt_hash_columns(hashes, keys, seed);
  sflt_insert(filter, &element);
}

int main(int argc, char** argv) {
  static char line[max_line];
  char *types[max_columns], *columns[max_columns];
  sflt_definition definition;
  sflt_problem problem;
  if (argc != 4) return 2;
  if (sflt_define(&definition, argv[1], &problem) != SFLT_OK) fail(argv[1], &problem);
  void* memory = malloc(sflt_size(&definition));
  sflt_filter* filter = sflt_init(memory, sflt_size(&definition), &definition, &problem);
  if (filter == NULL) fail("init", &problem);
  const size_t count = split(argv[2], ',', types);
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (split(line, '\t', columns) != count) return 2;
    insert_row(filter, &definition, types, columns, count);
  }
  const int is_text = strcmp(argv[3], "text") == 0;
  const size_t size = is_text ? sflt_text_size(filter) : sflt_binary_size(filter);
  char* form = malloc(size);
  const size_t written =
      is_text ? sflt_write_text(filter, form, size) - 1 : sflt_write_binary(filter, form, size);
  fwrite(form, 1, written, stdout);
  free(form);
  free(memory);
  return 0;
}
