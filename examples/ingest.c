/*
 * An ingest node that drops repeated lines before it sends them, and then sends what it has seen.
 *
 *   cc -o ingest ingest.c $(pkg-config --cflags --libs --static streamfilter)
 *   ./ingest 'bloom(keys=1e6, seed=42)' seen.copy < events > new_events
 *
 * seen.copy is what COPY reads into a column of type streamfilter. In the server, the filter of the
 * same kind and parameters learns it:
 *
 *   CREATE FOREIGN TABLE seen (line text) SERVER streamfilter
 *     OPTIONS (kind 'bloom', keys '1000000', seed '42');
 *   CREATE TABLE received (filter streamfilter);
 *   \copy received FROM seen.copy
 *   SELECT streamfilter_merge('seen', filter) FROM received;
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <streamfilter/streamfilter.h>
#include <string.h>

static void fail(const sflt_problem* problem) {
  fprintf(stderr, "ingest: %s\n", problem->message);
  if (problem->detail[0] != '\0') fprintf(stderr, "  %s\n", problem->detail);
  if (problem->hint[0] != '\0') fprintf(stderr, "  %s\n", problem->hint);
  exit(1);
}

static void save(const sflt_filter* filter, const char* path) {
  const size_t size = sflt_text_size(filter);
  char* text = malloc(size);
  FILE* file = fopen(path, "w");
  if (text == NULL || file == NULL) {
    perror(path);
    exit(1);
  }
  sflt_write_text(filter, text, size);
  fprintf(file, "%s\n", text);
  if (fclose(file) != 0) {
    perror(path);
    exit(1);
  }
  free(text);
}

int main(int argc, char** argv) {
  sflt_definition definition;
  sflt_problem problem;
  sflt_estimate estimate;
  char* line = NULL;
  size_t capacity = 0;
  ssize_t length;

  if (argc != 3) {
    fprintf(stderr, "usage: ingest DEFINITION FILE < lines > new lines\n");
    return 2;
  }
  if (sflt_define(&definition, argv[1], &problem) != SFLT_OK) fail(&problem);
  void* memory = malloc(sflt_size(&definition));
  sflt_filter* filter = sflt_init(memory, sflt_size(&definition), &definition, &problem);
  if (filter == NULL) fail(&problem);

  while ((length = getline(&line, &capacity, stdin)) > 0) {
    if (line[length - 1] == '\n') line[--length] = '\0';
    /* The key is one column of type text. */
    const uint64_t hash = sflt_hash_bytes(line, (size_t)length, sflt_seed(&definition));
    const sflt_element element = {.hash = hash, .importance = 0, .time = 0};
    if (!sflt_insert(filter, &element)) puts(line);
  }
  save(filter, argv[2]);

  sflt_estimate_of(filter, &estimate);
  fprintf(stderr,
          "%llu lines, %llu of them new; a new one would now be dropped with probability %.2g\n",
          (unsigned long long)estimate.inserted, (unsigned long long)estimate.inserted_new,
          estimate.fpr);
  free(line);
  free(memory);
  return 0;
}
