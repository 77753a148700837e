/* The C interface, from C: every function, every kind, and what callers do wrong. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streamfilter/streamfilter.h"

static int failures;
static int checks;

#define CHECK(condition)                                                        \
  do {                                                                          \
    ++checks;                                                                   \
    if (!(condition)) {                                                         \
      ++failures;                                                               \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                           \
  } while (0)

static sflt_problem problem;

static void* memory_for(const sflt_definition* definition) {
  void* memory = aligned_alloc(64, (sflt_size(definition) + 63) / 64 * 64);
  if (memory == NULL) abort();
  memset(memory, 0xA5, sflt_size(definition));
  return memory;
}

static sflt_filter* make(const char* text, sflt_definition* definition) {
  if (sflt_define(definition, text, &problem) != SFLT_OK) {
    fprintf(stderr, "%s: %s\n", text, problem.message);
    abort();
  }
  return sflt_init(memory_for(definition), sflt_size(definition), definition, &problem);
}

static sflt_element element_of(const sflt_definition* definition, int64_t key) {
  sflt_element element = {sflt_key_integer(definition, key), (double)(key % 100), key * 1000000};
  return element;
}

static int insert_key(sflt_filter* filter, int64_t key) {
  sflt_definition definition;
  sflt_definition_of(filter, &definition);
  const sflt_element element = element_of(&definition, key);
  return sflt_insert(filter, &element);
}

static int test_key(const sflt_filter* filter, int64_t key) {
  sflt_definition definition;
  sflt_definition_of(filter, &definition);
  const sflt_element element = element_of(&definition, key);
  return sflt_test(filter, &element);
}

static const char* const kinds[] = {
    "bloom(memory=16kB, keys=1000)",
    "bloom(memory=64kB, k=4, slicing=vertical, slices=4)",
    "sbf(memory=16kB)",
    "rsbf(memory=16kB, k=3)",
    "bsbf(memory=16kB, k=2)",
    "bsbfsd(memory=16kB, k=2)",
    "rlbsbf(memory=16kB, k=2)",
    "sqf(memory=16kB)",
    "sqf(memory=16kB, p=20, fingerprint=integer)",
    "dsqf(memory=16kB)",
    "ibf2c(memory=16kB, importance_range='0,100')",
    "ibfmc(memory=16kB, importance_range='0,100')",
    "ibfh(memory=16kB, importance_range='0,100')",
    "timer(memory=64kB, window='1 hour', keys=1000)",
    "lru(memory=64kB)",
    "fplru(memory=64kB)",
    "clq(memory=16kB)",
    "ell(memory=16kB)",
    "vqf(memory=16kB)",
    "auto(keys=1000)",
};
enum { kind_count = sizeof kinds / sizeof *kinds };

/* Is there a definition of each kind that the library has? */
static void test_all_kinds_are_there(void) {
  sflt_definition definition;
  CHECK(sflt_define(&definition, "nothing()", &problem) == SFLT_UNKNOWN_NAME);
  const char* at = strstr(problem.hint, "Valid kinds are: auto, ");
  CHECK(at != NULL);
  for (at = at != NULL ? strchr(at, ',') : NULL; at != NULL; at = strchr(at + 2, ',')) {
    const size_t length = strcspn(at + 2, ",.");
    int found = 0;
    for (int i = 0; i < kind_count; ++i)
      found |= strncmp(kinds[i], at + 2, length) == 0 && kinds[i][length] == '(';
    CHECK(found);
  }
}

/* ---- definitions ---- */

static void test_definitions(void) {
  sflt_definition definition, again;
  char text[SFLT_MAX_DEFINITION], small[8];
  CHECK(sflt_define(&definition, "bloom(keys=1000, fpr=0.001, seed=7)", &problem) == SFLT_OK);
  CHECK(problem.status == SFLT_OK && problem.message[0] == '\0');
  CHECK(sflt_size(&definition) > 1000);
  CHECK(sflt_seed(&definition) == 7);
  CHECK(sflt_fpr_bound(&definition) <= 0.001);
  CHECK(isinf(sflt_window_keys(&definition, 0.01)));
  CHECK(sflt_traits(&definition) == SFLT_CAN_MERGE);
  CHECK(sflt_print_definition(&definition, text, sizeof text) == strlen(text));
  CHECK(strncmp(text, "bloom(memory=", 13) == 0);
  CHECK(sflt_define(&again, text, NULL) == SFLT_OK);
  CHECK(memcmp(&again, &definition, sizeof again) == 0);
  sflt_print_definition(&definition, small, sizeof small);
  CHECK(strcmp(small, "bloom(m") == 0);

  CHECK(sflt_define(&definition,
                    "timer(window='1 hour', keys=10, memory=64kB, nulls='not distinct')",
                    NULL) == SFLT_OK);
  CHECK(sflt_traits(&definition) & SFLT_USES_TIME);
  CHECK(sflt_traits(&definition) & SFLT_NULLS_NOT_DISTINCT);
  CHECK(sflt_define(&definition, "sqf(p=20, fingerprint=integer)", NULL) == SFLT_OK);
  CHECK(sflt_traits(&definition) & SFLT_TAKES_INTEGERS);
  CHECK(sflt_traits(&definition) & SFLT_CAN_FORGET);
  CHECK(sflt_key_integer(&definition, -5) == (uint64_t)-5);
}

static void test_problems(void) {
  sflt_definition definition;
  const sflt_status status = sflt_define(&definition, "blom(keys=1)", &problem);
  CHECK(status == SFLT_UNKNOWN_NAME && problem.status == SFLT_UNKNOWN_NAME);
  CHECK(strcmp(problem.message, "unrecognized kind of filter \"blom\"") == 0);
  CHECK(strstr(problem.hint, "Perhaps you meant \"bloom\".") != NULL);
  CHECK(sflt_define(&definition, "bloom(keys=1", NULL) == SFLT_SYNTAX);
  CHECK(sflt_define(&definition, "bloom(keys=0)", NULL) == SFLT_OUT_OF_RANGE);
  CHECK(sflt_define(&definition, "bloom(keys=1e9, memory=1kB)", NULL) == SFLT_CONFLICT);
  CHECK(sflt_define(&definition, "sbf(memory=1)", NULL) == SFLT_TOO_SMALL);
  CHECK(sflt_define(&definition, "sbf(memory=100000TB)", NULL) == SFLT_TOO_LARGE);
  CHECK(sflt_define(&definition, "clq(layout=blocked)", NULL) == SFLT_UNSUPPORTED);
  CHECK(sflt_define(&definition, "sbf():1:AAAA", NULL) != SFLT_OK);
  CHECK(sflt_define(NULL, "sbf()", &problem) == SFLT_ARGUMENT);
  CHECK(sflt_define(&definition, NULL, &problem) == SFLT_ARGUMENT);
  CHECK(problem.message[0] != '\0');
}

/* ---- filters ---- */

static void test_memory(void) {
  sflt_definition definition;
  sflt_define(&definition, "sbf(memory=16kB)", NULL);
  const size_t size = sflt_size(&definition);
  char* memory = memory_for(&definition);
  CHECK(sflt_init(NULL, 1 << 20, &definition, &problem) == NULL);
  CHECK(problem.status == SFLT_ARGUMENT);
  CHECK(sflt_init(memory + 1, 1 << 20, &definition, &problem) == NULL);
  CHECK(problem.status == SFLT_ARGUMENT && strstr(problem.message, "aligned") != NULL);
  CHECK(sflt_init(memory, size - 1, &definition, &problem) == NULL);
  CHECK(problem.status == SFLT_ARGUMENT && strstr(problem.detail, "bytes instead of") != NULL);
  CHECK(sflt_init(memory, size, NULL, &problem) == NULL);

  sflt_filter* filter = sflt_init(memory, size, &definition, &problem);
  CHECK((void*)filter == (void*)memory && problem.status == SFLT_OK);
  CHECK(insert_key(filter, 1) == 0 && insert_key(filter, 1) == 1);
  char* moved = memory_for(&definition);
  memcpy(moved, memory, size);
  sflt_filter* copy = sflt_open(moved, size, &problem);
  CHECK(copy != NULL && test_key(copy, 1) && !test_key(copy, 2));
  CHECK(sflt_open(moved, size - 1, &problem) == NULL && problem.status == SFLT_CORRUPT);
  CHECK(sflt_open(moved + 4, 100, &problem) == NULL && problem.status == SFLT_ARGUMENT);
  moved[6] ^= 1;
  CHECK(sflt_check(moved, size, &problem) == SFLT_CORRUPT);
  moved[6] ^= 1;
  moved[8] = (char)(sflt_format_version() + 1);
  CHECK(sflt_check(moved, size, &problem) == SFLT_NEWER_VERSION);
  free(memory);
  free(moved);
}

/* One element at a time, and many at once: the same answers, the same bytes. */
static void test_many(const char* text) {
  enum { count = 3000 };
  sflt_definition definition;
  sflt_filter *one = make(text, &definition), *many = make(text, &definition);
  static sflt_element elements[count];
  static unsigned char seen[count];
  size_t fresh = 0, found = 0;
  for (int i = 0; i < count; ++i) elements[i] = element_of(&definition, i * 7919 % 2000);
  const size_t answer = sflt_insert_many(many, elements, count, seen);
  for (int i = 0; i < count; ++i) {
    const int was_seen = sflt_insert(one, &elements[i]);
    fresh += !was_seen;
    CHECK(was_seen == seen[i]);
  }
  CHECK(answer == fresh);
  CHECK(memcmp(one, many, sflt_size(&definition)) == 0);
  CHECK(sflt_test_many(many, elements, count, seen) == sflt_test_many(many, elements, count, NULL));
  for (int i = 0; i < count; ++i) found += sflt_test(many, &elements[i]) == seen[i];
  CHECK(found == count);
  CHECK(sflt_check(many, sflt_size(&definition), NULL) == SFLT_OK);

  sflt_estimate estimate;
  sflt_estimate_of(many, &estimate);
  CHECK(estimate.inserted == count && estimate.inserted_new == fresh);
  CHECK(estimate.fill > 0 && estimate.fill <= 1 && estimate.fpr >= 0 && estimate.fpr <= 1);
  CHECK(isnan(estimate.distinct) || estimate.distinct > 0);
  free(one);
  free(many);
}

static void test_forgetting(const char* text) {
  sflt_definition definition;
  sflt_filter* filter = make(text, &definition);
  const sflt_element element = element_of(&definition, 42);
  int found = 7;
  if (sflt_traits(&definition) & SFLT_CAN_FORGET) {
    CHECK(sflt_forget(filter, &element, &found, &problem) == SFLT_OK && found == 0);
    sflt_insert(filter, &element);
    CHECK(sflt_forget(filter, &element, &found, NULL) == SFLT_OK && found == 1);
    CHECK(sflt_test(filter, &element) == 0);
    CHECK(sflt_forget(filter, &element, NULL, NULL) == SFLT_OK);
  } else {
    CHECK(sflt_forget(filter, &element, &found, &problem) == SFLT_UNSUPPORTED && found == 0);
    CHECK(strstr(problem.message, "cannot forget") != NULL);
  }
  free(filter);
}

static void test_merging(const char* text) {
  sflt_definition definition, other;
  sflt_filter *into = make(text, &definition), *from = make(text, &definition);
  int known = 0;
  for (int key = 0; key < 20; ++key) insert_key(from, key);
  if (sflt_traits(&definition) & SFLT_CAN_MERGE) {
    CHECK(sflt_merge(into, from, &problem) == SFLT_OK);
    for (int key = 0; key < 20; ++key) {
      known += test_key(from, key);
      CHECK(!test_key(from, key) || test_key(into, key));
    }
    CHECK(known > 0);
    CHECK(sflt_check(into, sflt_size(&definition), NULL) == SFLT_OK);
  } else {
    CHECK(sflt_merge(into, from, &problem) == SFLT_UNSUPPORTED);
  }
  sflt_filter* stranger = make("sbf(memory=8kB, seed=1)", &other);
  CHECK(sflt_merge(into, stranger, &problem) != SFLT_OK && problem.message[0] != '\0');
  free(into);
  free(from);
  free(stranger);
}

/* ---- forms ---- */

static void test_binary(const char* text, int keys) {
  sflt_definition definition, read;
  sflt_filter* filter = make(text, &definition);
  for (int key = 0; key < keys; ++key) insert_key(filter, key);
  const size_t size = sflt_binary_size(filter), memory = sflt_size(&definition);
  unsigned char* bytes = malloc(size);
  CHECK(sflt_write_binary(filter, bytes, size - 1) == size);
  CHECK(sflt_write_binary(filter, bytes, size) == size);
  CHECK(sflt_define_from_binary(&read, bytes, SFLT_BINARY_HEADER, &problem) == SFLT_OK);
  CHECK(memcmp(&read, &definition, sizeof read) == 0);
  CHECK(sflt_define_from_binary(&read, bytes, 63, &problem) == SFLT_CORRUPT);
  void* block = memory_for(&definition);
  CHECK((void*)sflt_read_binary(block, memory, bytes, size, &problem) == block);
  CHECK(memcmp(block, filter, memory) == 0);
  CHECK(sflt_read_binary(block, memory - 1, bytes, size, &problem) == NULL);
  CHECK(problem.status == SFLT_ARGUMENT);
  CHECK(sflt_read_binary(block, memory, bytes, size - 1, &problem) == NULL);
  CHECK(problem.status == SFLT_CORRUPT);
  bytes[size / 2] ^= 16;
  CHECK(sflt_read_binary(block, memory, bytes, size, &problem) == NULL);
  CHECK(problem.status == SFLT_CORRUPT);
  free(block);
  free(bytes);
  free(filter);
}

static void test_text(const char* text, int keys) {
  sflt_definition definition, read;
  sflt_filter* filter = make(text, &definition);
  for (int key = 0; key < keys; ++key) insert_key(filter, key);
  const size_t size = sflt_text_size(filter), memory = sflt_size(&definition);
  char* form = malloc(size);
  CHECK(sflt_write_text(filter, form, 10) > 10);
  const size_t written = sflt_write_text(filter, form, size);
  CHECK(written <= size && strlen(form) == written - 1);
  CHECK((strstr(form, "):1:") != NULL) == (keys > 0));
  CHECK(sflt_define_from_text(&read, form, strlen(form), &problem) == SFLT_OK);
  CHECK(memcmp(&read, &definition, sizeof read) == 0);
  CHECK(sflt_define_from_text(&read, form, (size_t)(strchr(form, ')') - form) + 1, NULL) ==
        SFLT_OK);
  void* block = memory_for(&definition);
  CHECK((void*)sflt_read_text(block, memory, form, strlen(form), &problem) == block);
  CHECK(memcmp(block, filter, memory) == 0);
  CHECK(sflt_read_text(block, memory - 1, form, strlen(form), &problem) == NULL);
  CHECK(problem.status == SFLT_ARGUMENT);
  if (keys > 0) {
    CHECK(sflt_read_text(block, memory, form, strlen(form) - 1, &problem) == NULL);
    CHECK(problem.status == SFLT_CORRUPT);
    form[strlen(form) - 20] ^= 1;
    CHECK(sflt_read_text(block, memory, form, strlen(form), &problem) == NULL);
    CHECK(problem.status == SFLT_CORRUPT);
    form[strlen(form) - 20] = '~';
    CHECK(sflt_read_text(block, memory, form, strlen(form), &problem) == NULL);
    CHECK(problem.status == SFLT_CORRUPT);
  }
  free(block);
  free(form);
  free(filter);
}

/* Bytes from outside must never do harm. */
static void test_hostile_bytes(const char* text) {
  sflt_definition definition;
  sflt_filter* filter = make(text, &definition);
  for (int key = 0; key < 100; ++key) insert_key(filter, key);
  const size_t memory = sflt_size(&definition);
  unsigned char* copy = memory_for(&definition);
  uint64_t random = 1;
  for (int round = 0; round < 300; ++round) {
    memcpy(copy, filter, memory);
    for (int i = 0; i < 4; ++i) {
      random = sflt_hash_integer((int64_t)random, 5);
      copy[random % (round % 2 ? memory : 768)] = (unsigned char)(random >> 56);
    }
    sflt_filter* opened = sflt_open(copy, memory, NULL);
    if (opened != NULL && sflt_traits(&definition) & SFLT_CAN_MERGE)
      (void)sflt_merge(opened, filter, NULL);
    if (opened != NULL) insert_key(opened, round);
  }
  free(copy);
  free(filter);
}

/* ---- keys ---- */

static uint64_t numeric(const char* text) {
  uint64_t hash = 0;
  CHECK(sflt_hash_numeric(text, strlen(text), 0, &hash, &problem) == SFLT_OK);
  return hash;
}

static sflt_status numeric_status(const char* text) {
  uint64_t hash;
  return sflt_hash_numeric(text, strlen(text), 0, &hash, &problem);
}

static void test_keys(void) {
  CHECK(sflt_hash_real(0.0, 3) == sflt_hash_real(-0.0, 3));
  CHECK(sflt_hash_real(NAN, 3) == sflt_hash_real(-NAN, 3));
  CHECK(sflt_hash_integer(1, 0) != sflt_hash_integer(1, 1));
  CHECK(sflt_hash_interval(1, 0, 0, 0) == sflt_hash_interval(0, 30, 0, 0));
  CHECK(sflt_hash_interval(0, 1, 0, 0) == sflt_hash_interval(0, 0, INT64_C(86400000000), 0));
  const uint64_t columns[] = {sflt_hash_integer(1, 0), sflt_hash_bytes("x", 1, 0)};
  CHECK(sflt_hash_columns(columns, 1, 0) == columns[0]);
  CHECK(sflt_hash_columns(columns, 2, 0) == sflt_hash_bytes(columns, sizeof columns, 0));
  CHECK(sflt_hash_array(columns, 0, 0) != sflt_hash_array(columns, 1, 0));
  CHECK(sflt_hash_null(0) != sflt_hash_integer(0, 0));

  CHECK(numeric("1") == numeric("1.000") && numeric("1") == numeric(" +001e0 "));
  CHECK(numeric("12345.678") == numeric("0.12345678e5"));
  CHECK(numeric("0.0001") == numeric("1e-4") && numeric("10000") == numeric("1e4"));
  CHECK(numeric("0") == numeric("-0.000") && numeric(".5") == numeric("5e-1"));
  CHECK(numeric("1") != numeric("-1") && numeric("1") != numeric("10"));
  CHECK(numeric("1") != numeric("10000") && numeric("NaN") != numeric("0"));
  CHECK(numeric("inf") == numeric("Infinity") && numeric("inf") != numeric("-inf"));
  CHECK(numeric_status("") == SFLT_SYNTAX && numeric_status(".") == SFLT_SYNTAX);
  CHECK(numeric_status("1x") == SFLT_SYNTAX && numeric_status("1e") == SFLT_SYNTAX);
  CHECK(numeric_status("1 2") == SFLT_SYNTAX && numeric_status("--1") == SFLT_SYNTAX);
  CHECK(numeric_status("1e131071") == SFLT_OK && numeric_status("1e131072") == SFLT_OUT_OF_RANGE);
  CHECK(numeric_status("1e-16383") == SFLT_OK && numeric_status("1e-16384") == SFLT_OUT_OF_RANGE);
  CHECK(numeric_status("1e99999999999999999999") == SFLT_OUT_OF_RANGE);
  CHECK(sflt_hash_numeric(NULL, 0, 0, NULL, NULL) == SFLT_ARGUMENT);
}

int main(void) {
  CHECK(sflt_abi_version() >= SFLT_ABI_VERSION);
  CHECK(sflt_format_version() == 1);
  test_definitions();
  test_all_kinds_are_there();
  test_problems();
  test_memory();
  test_keys();
  for (int i = 0; i < kind_count; ++i) {
    test_many(kinds[i]);
    test_forgetting(kinds[i]);
    test_merging(kinds[i]);
    test_binary(kinds[i], 0);
    test_binary(kinds[i], 100);
    test_text(kinds[i], 0);
    test_text(kinds[i], 100);
    test_hostile_bytes(kinds[i]);
  }
  test_text("bloom(memory=9000001, k=3)", 100); /* more than one step of the body */
  printf("c interface: %d of %d checks met\n", checks - failures, checks);
  return failures == 0 ? 0 : 1;
}
