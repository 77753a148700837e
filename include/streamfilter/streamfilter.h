/*
 * libstreamfilter: the filters of the PostgreSQL extension streamfilter, outside of the server.
 *
 * A filter that is built here is equal, to the last bit, to the one that the server builds from the
 * same keys in the same order. So a node can filter its events before it sends them, and then send
 * the filter: its text or binary form is a value of the SQL type streamfilter, which COPY reads and
 * streamfilter_merge() adds to a named filter.
 *
 * Memory. The library allocates nothing and keeps nothing. A filter is one block of the caller's
 * memory, sflt_size() bytes at an address divisible by 8, without pointers: it can be mapped from a
 * file, shared between processes, copied and moved. Whatever a function writes, it writes to memory
 * that its caller passes; there is nothing to free.
 *
 * Threads. There is no global state. At a time, one thread may change a filter, or many read it.
 *
 * Errors. What can fail returns an sflt_status, or a filter or NULL, and says why in *problem,
 * which may be NULL. Nothing is printed or thrown. Functions without a status cannot fail; they
 * rely on pointers that are not NULL, definitions that sflt_define() or sflt_definition_of() has
 * filled in, and filters that sflt_init(), sflt_open() or sflt_read_…() has returned.
 *
 * Promise. A program that was linked with this version goes on working with later ones: functions
 * keep their meaning, structs their layout, constants their value. Filters that a version has
 * written are read by all later ones. Machines are little-endian.
 */
#ifndef STREAMFILTER_STREAMFILTER_H
#define STREAMFILTER_STREAMFILTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SFLT_API __attribute__((visibility("default")))

/* Versions of this header, and of the library at run time, which is never less. */
#define SFLT_ABI_VERSION 1
SFLT_API unsigned sflt_abi_version(void);

/* The version of a filter's bytes that this library writes; the newest that it reads. */
SFLT_API unsigned sflt_format_version(void);

/* ---- errors ---------------------------------------------------------------------------------- */

typedef enum sflt_status {
  SFLT_OK = 0,
  SFLT_SYNTAX = 1,         /* text that cannot be read */
  SFLT_UNKNOWN_NAME = 2,   /* no such kind or option */
  SFLT_OUT_OF_RANGE = 3,   /* a value outside its range */
  SFLT_CONFLICT = 4,       /* options that contradict each other; a promise that cannot be kept */
  SFLT_TOO_SMALL = 5,      /* memory that cannot hold the kind */
  SFLT_TOO_LARGE = 6,      /* sizes past what can be addressed */
  SFLT_MISMATCH = 7,       /* two filters that cannot be merged */
  SFLT_UNSUPPORTED = 8,    /* what this kind of filter cannot do */
  SFLT_CORRUPT = 9,        /* bytes that are not a filter */
  SFLT_NEWER_VERSION = 10, /* bytes of a later format */
  SFLT_ARGUMENT = 11       /* a null pointer; memory that is too small or not aligned */
} sflt_status;

/* The server's message: a line without a full stop, then sentences; "" if there are none. */
typedef struct sflt_problem {
  int32_t status; /* an sflt_status */
  char message[256];
  char detail[384];
  char hint[384];
} sflt_problem;

/* ---- definitions ----------------------------------------------------------------------------- */

/* A kind of filter with all of its parameters. Without pointers: copy it as you like. */
typedef struct sflt_definition {
  uint64_t words[64]; /* the library's own */
} sflt_definition;

/*
 * Reads `kind(option=value, ...)`, for example "bloom(keys=1e6, fpr=0.001)", and derives what is
 * not given, as the server does for a value of type streamfilter. The options are those of the
 * server.
 *
 * A filter to be merged into a named one needs the same parameters and seed. The seed of a
 * named filter is random unless its option `seed` says otherwise (here, the default is 0), so take
 * the definition from the server: streamfilter_value('seen')::text up to the first colon behind the
 * closing parenthesis, or sflt_definition_of() what sflt_read_binary() has read.
 */
SFLT_API sflt_status sflt_define(sflt_definition* definition, const char* text,
                                 sflt_problem* problem);

/*
 * Writes the definition as text with a final zero; reading that gives the same definition. Returns
 * the length of the text without the zero. SFLT_MAX_DEFINITION bytes are always enough; text that
 * does not fit is cut.
 */
#define SFLT_MAX_DEFINITION 2048
SFLT_API size_t sflt_print_definition(const sflt_definition* definition, char* buffer, size_t size);

/* The bytes that a filter takes: those of its slices, and 512. Option `memory` counts 64 of these.
 */
SFLT_API uint64_t sflt_size(const sflt_definition* definition);

/* The seed of the hashes of its keys. */
SFLT_API uint64_t sflt_seed(const sflt_definition* definition);

enum {
  SFLT_USES_IMPORTANCE = 1, /* of an element */
  SFLT_USES_TIME = 2,
  SFLT_CAN_FORGET = 4,          /* sflt_forget() works */
  SFLT_CAN_MERGE = 8,           /* sflt_merge() works */
  SFLT_TAKES_INTEGERS = 16,     /* keys are not hashed: fingerprint=integer */
  SFLT_NULLS_NOT_DISTINCT = 32, /* a key with a NULL in it is a key: nulls=not distinct */
  SFLT_KEEPS_FPR_FOREVER = 64   /* on any stream, if it was defined without keys */
};
SFLT_API unsigned sflt_traits(const sflt_definition* definition);

/* The false-positive rate that the parameters imply as a bound; 1: none. */
SFLT_API double sflt_fpr_bound(const sflt_definition* definition);

/*
 * How many elements back a key is still remembered with at most `fnr` false negatives; infinity if
 * there is no such limit, NaN if this kind has no model of it.
 */
SFLT_API double sflt_window_keys(const sflt_definition* definition, double fnr);

/* ---- filters --------------------------------------------------------------------------------- */

/* A block of memory that holds a filter: always at the address that was passed as `memory`. */
typedef struct sflt_filter sflt_filter;

/* Makes an empty filter in `size` bytes at `memory`; NULL if they are too few or not aligned. */
SFLT_API sflt_filter* sflt_init(void* memory, size_t size, const sflt_definition* definition,
                                sflt_problem* problem);

/*
 * The filter that lies at `memory`, after checking every byte of it: for blocks from a file or from
 * another process. NULL if these bytes are no filter of `size` bytes. Safe on any bytes.
 */
SFLT_API sflt_filter* sflt_open(void* memory, size_t size, sflt_problem* problem);

/* The check of sflt_open() alone. */
SFLT_API sflt_status sflt_check(const void* memory, size_t size, sflt_problem* problem);

SFLT_API void sflt_definition_of(const sflt_filter* filter, sflt_definition* definition);

/* ---- elements -------------------------------------------------------------------------------- */

typedef struct sflt_element {
  uint64_t hash;     /* of the key: below */
  double importance; /* for kinds with SFLT_USES_IMPORTANCE; else 0 */
  int64_t time;      /* microseconds since 1970, for kinds with SFLT_USES_TIME; else 0 */
} sflt_element;

/* Returns 1 if the key was (probably) seen, else 0; remembers nothing. */
SFLT_API int sflt_test(const sflt_filter* filter, const sflt_element* element);

/* Returns 1 if the key was (probably) seen before, else 0; remembers the key. */
SFLT_API int sflt_insert(sflt_filter* filter, const sflt_element* element);

/*
 * The two for `count` elements in order; faster if a filter is larger than the caches.
 * Stores each answer in seen[i], unless `seen` is NULL, and returns how many were 0.
 */
SFLT_API size_t sflt_test_many(const sflt_filter* filter, const sflt_element* elements,
                               size_t count, unsigned char* seen);
SFLT_API size_t sflt_insert_many(sflt_filter* filter, const sflt_element* elements, size_t count,
                                 unsigned char* seen);

/* Forgets a key. *found (may be NULL): was it there? SFLT_UNSUPPORTED: this kind cannot. */
SFLT_API sflt_status sflt_forget(sflt_filter* filter, const sflt_element* element, int* found,
                                 sflt_problem* problem);

/* Adds what `from` remembers to `into`: two filters of equal parameters. On failure, `into` is as
 * it was. */
SFLT_API sflt_status sflt_merge(sflt_filter* into, const sflt_filter* from, sflt_problem* problem);

typedef struct sflt_estimate {
  double fill;           /* share of the cells in use, 0 to 1 */
  double fpr;            /* the probability that a new key would now be called a repeat */
  double distinct;       /* distinct keys seen; NaN: unknown */
  uint64_t inserted;     /* elements */
  uint64_t inserted_new; /* of these, found to be new */
  int32_t full;          /* 1: so full that `distinct` is a lower bound */
  int32_t reserved;
} sflt_estimate;

SFLT_API void sflt_estimate_of(const sflt_filter* filter, sflt_estimate* estimate);

/* ---- keys ------------------------------------------------------------------------------------ */

/*
 * The hash of a key is made of the hashes of its columns, and these of bytes that are the same for
 * values that SELECT DISTINCT calls equal. In SQL terms, with `seed` = sflt_seed():
 *
 *   smallint, integer, bigint      sflt_hash_integer(value)
 *   boolean                        sflt_hash_integer(0 or 1)
 *   oid, "char"                    sflt_hash_integer(the unsigned value)
 *   real, double precision         sflt_hash_real(value)
 *   numeric                        sflt_hash_numeric("12.50")
 *   text, varchar                  sflt_hash_bytes(the characters, in the encoding of the database)
 *   char(n)                        the same without the blanks at its end
 *   bytea, uuid, macaddr           sflt_hash_bytes(the bytes; 16 of a uuid as they are printed)
 *   an enum                        sflt_hash_bytes(the label)
 *   date                           sflt_hash_integer(days since 2000-01-01)
 *   time                           sflt_hash_integer(microseconds since midnight)
 *   timestamp, with time zone too  sflt_hash_integer(microseconds since 2000-01-01, in UTC)
 *   interval                       sflt_hash_interval(months, days, microseconds)
 *   an array of one dimension      sflt_hash_array(the hashes of its elements)
 *   a row inside of a key          sflt_hash_columns(the hashes of its columns)
 *
 * A key of one column has the hash of that column, a key of several sflt_hash_columns() of theirs.
 * A key with a NULL in it is no key: do not insert it, and call its row new; unless the filter has
 * SFLT_NULLS_NOT_DISTINCT: then the NULL has sflt_hash_null(). A filter with SFLT_TAKES_INTEGERS
 * takes keys of one integer column, which are not hashed: sflt_key_integer() does right in any
 * case.
 *
 * The server converts a value to the type of the filter's column first, with its scale and length,
 * and so must the caller. Types that are not listed are hashed in the server only; so is text under
 * a nondeterministic collation. docs/c-library.md has the bytes behind each function.
 */
SFLT_API uint64_t sflt_hash_integer(int64_t value, uint64_t seed);
SFLT_API uint64_t sflt_hash_real(double value, uint64_t seed);
SFLT_API uint64_t sflt_hash_bytes(const void* bytes, size_t length, uint64_t seed);
SFLT_API uint64_t sflt_hash_interval(int32_t months, int32_t days, int64_t microseconds,
                                     uint64_t seed);
SFLT_API uint64_t sflt_hash_array(const uint64_t* elements, size_t count, uint64_t seed);
SFLT_API uint64_t sflt_hash_columns(const uint64_t* columns, size_t count, uint64_t seed);
SFLT_API uint64_t sflt_hash_null(uint64_t seed);

/*
 * The hash of a number in decimal, of `length` characters: "-12.50", "1e3", "NaN", "Infinity".
 * Zeros at either end do not count. SFLT_SYNTAX for other text, SFLT_OUT_OF_RANGE beyond numeric.
 */
SFLT_API sflt_status sflt_hash_numeric(const char* text, size_t length, uint64_t seed,
                                       uint64_t* hash, sflt_problem* problem);

/* The hash of a key of one integer column, for filters that hash and for those that do not. */
SFLT_API uint64_t sflt_key_integer(const sflt_definition* definition, int64_t value);

/* Between the server's epoch, 2000-01-01, and that of Unix. */
#define SFLT_EPOCH_DAYS 10957
#define SFLT_EPOCH_MICROSECONDS INT64_C(946684800000000)

/* ---- text and binary form -------------------------------------------------------------------- */

/*
 * What the server calls the text and the binary form of a value of type streamfilter: what COPY
 * writes and reads, and what a parameter of a query takes, in either format. The server takes
 * values of up to 1 GB.
 *
 * Each function that writes returns how many bytes the form takes, with the final zero of a text,
 * and writes only if `size` is not less. sflt_write_text() needs some of `buffer` to work in, so
 * ask sflt_text_size(), which is never less than what it returns.
 */
SFLT_API size_t sflt_binary_size(const sflt_filter* filter);
SFLT_API size_t sflt_write_binary(const sflt_filter* filter, void* buffer, size_t size);

SFLT_API size_t sflt_text_size(const sflt_filter* filter);
SFLT_API size_t sflt_write_text(const sflt_filter* filter, char* buffer, size_t size);

/*
 * Reading: sflt_define_from_…() tells what filter is meant, and so how much memory it will need,
 * from the beginning of it (text: up to the closing parenthesis; bytes: all, or the first
 * SFLT_BINARY_HEADER). sflt_read_…() then reads and checks all of it; on failure, the contents of
 * `memory` are undefined. Safe on any bytes.
 */
#define SFLT_BINARY_HEADER 256
SFLT_API sflt_status sflt_define_from_binary(sflt_definition* definition, const void* bytes,
                                             size_t length, sflt_problem* problem);
SFLT_API sflt_filter* sflt_read_binary(void* memory, size_t size, const void* bytes, size_t length,
                                       sflt_problem* problem);

SFLT_API sflt_status sflt_define_from_text(sflt_definition* definition, const char* text,
                                           size_t length, sflt_problem* problem);
SFLT_API sflt_filter* sflt_read_text(void* memory, size_t size, const char* text, size_t length,
                                     sflt_problem* problem);

#ifdef __cplusplus
}
#endif

#endif
