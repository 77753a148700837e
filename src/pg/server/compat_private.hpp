// What is known here of structs that the server keeps for itself, though a header shows them; only
// files that need it include this. All of it is so in PostgreSQL 15 to 19. A field that goes, or
// gets another type, is an error of the compiler in this file; what a field means no compiler
// tells, so before a new major version each paragraph is held against the server's source.
#pragma once

extern "C" {
#include "access/hio.h"
#include "commands/copyfrom_internal.h"
#include "executor/tuptable.h"
}

#include <type_traits>

#define SF_PRIVATE(owner, field, ...) \
  static_assert(std::is_same_v<decltype(owner::field), __VA_ARGS__>)

// ---- COPY (pg/ingest/copy_ingest.cpp; the server's copyfrom.c and copyfromparse.c) --------------

// Where COPY reads. Whenever its buffers are empty, it asks the callback if the source is one, and
// keeps no other way to the bytes. If it did, it would go on reading rows that were inserted here.
// At its end it closes the program or the file that these name, so all three are cleared where the
// program was closed before: otherwise it is closed twice.
SF_PRIVATE(CopyFromStateData, copy_src, CopySource);
SF_PRIVATE(CopyFromStateData, data_source_cb, copy_data_source_cb);
SF_PRIVATE(CopyFromStateData, copy_file, FILE*);
SF_PRIVATE(CopyFromStateData, is_program, bool);
SF_PRIVATE(CopyFromStateData, filename, char*);

// How far it has come. No other field tells: these are set aside, and brought back, as one. If
// there were one more, our rows would begin at another byte than the one where COPY's row has
// ended. Where nothing is converted, input_buf is the raw buffer, and up to input_buf_len its text
// is valid.
SF_PRIVATE(CopyFromStateData, input_buf, char*);
SF_PRIVATE(CopyFromStateData, input_buf_index, int);
SF_PRIVATE(CopyFromStateData, input_buf_len, int);
SF_PRIVATE(CopyFromStateData, input_reached_eof, bool);
SF_PRIVATE(CopyFromStateData, input_reached_error, bool);
SF_PRIVATE(CopyFromStateData, raw_buf_index, int);
SF_PRIVATE(CopyFromStateData, raw_buf_len, int);
SF_PRIVATE(CopyFromStateData, raw_reached_eof, bool);

// The line that messages tell of: CopyFromErrorCallback() reads these, and the number is raised
// before a line is read. Otherwise errors name another line; no row is affected.
SF_PRIVATE(CopyFromStateData, cur_lineno, uint64);
SF_PRIVATE(CopyFromStateData, cur_attname, const char*);
SF_PRIVATE(CopyFromStateData, cur_attval, const char*);
SF_PRIVATE(CopyFromStateData, line_buf, StringInfoData);
SF_PRIVATE(CopyFromStateData, line_buf_valid, bool);

// How a plain line becomes values. The first line tells how lines end. raw_fields has a place for
// each column of attnumlist; functions and types are by column, and so are defaults since 16. An
// option that changes what a plain line means must be looked at in has_plain_lines(), or values are
// read wrongly: so are convert_select_flags (of columns that are not read) and default_print.
SF_PRIVATE(CopyFromStateData, eol_type, EolType);
SF_PRIVATE(CopyFromStateData, attnumlist, List*);
SF_PRIVATE(CopyFromStateData, raw_fields, char**);
SF_PRIVATE(CopyFromStateData, in_functions, FmgrInfo*);
SF_PRIVATE(CopyFromStateData, typioparams, Oid*);
SF_PRIVATE(CopyFromStateData, num_defaults, AttrNumber);
SF_PRIVATE(CopyFromStateData, defmap, int*);
SF_PRIVATE(CopyFromStateData, defexprs, ExprState**);
SF_PRIVATE(CopyFromStateData, convert_select_flags, bool*);
SF_PRIVATE(CopyFromStateData, opts, CopyFormatOptions);
SF_PRIVATE(CopyFormatOptions, delim, char*);
SF_PRIVATE(CopyFormatOptions, quote, char*);
SF_PRIVATE(CopyFormatOptions, null_print, char*);
SF_PRIVATE(CopyFormatOptions, null_print_len, int);
SF_PRIVATE(CopyFormatOptions, force_notnull_flags, bool*);
SF_PRIVATE(CopyFormatOptions, force_null_flags, bool*);

// What rows are inserted with, as CopyFrom() does: open_target() repeats its beginning. What it
// would do besides, rows after the first would lack. A volatile default or condition forbids to
// read ahead.
SF_PRIVATE(CopyFromStateData, rel, Relation);
SF_PRIVATE(CopyFromStateData, copycontext, MemoryContext);
SF_PRIVATE(CopyFromStateData, qualexpr, ExprState*);
SF_PRIVATE(CopyFromStateData, whereClause, Node*);
SF_PRIVATE(CopyFromStateData, volatile_defexprs, bool);
SF_PRIVATE(CopyFromStateData, transition_capture, TransitionCaptureState*);
SF_PRIVATE(CopyFormatOptions, freeze, bool);

#if PG_VERSION_NUM >= 180000
#define SF_INIT_COPY_RANGE_TABLE(estate, copy) \
  ExecInitRangeTable(estate, (copy)->range_table, (copy)->rteperminfos, bms_make_singleton(1))
#elif PG_VERSION_NUM >= 160000
#define SF_INIT_COPY_RANGE_TABLE(estate, copy) \
  ExecInitRangeTable(estate, (copy)->range_table, (copy)->rteperminfos)
#else
#define SF_INIT_COPY_RANGE_TABLE(estate, copy) ExecInitRangeTable(estate, (copy)->range_table)
#endif

// COPY can skip unreadable rows since 17.
#if PG_VERSION_NUM >= 170000
#define SF_COPY_SKIPS_ERRORS(copy) ((copy)->opts.on_error != COPY_ON_ERROR_STOP)
#else
#define SF_COPY_SKIPS_ERRORS(copy) false
#endif

#if PG_VERSION_NUM >= 190000
#define SF_COPY_IS_TEXT(copy) ((copy)->opts.format == COPY_FORMAT_TEXT)
#define SF_COPY_IS_CSV(copy) ((copy)->opts.format == COPY_FORMAT_CSV)
#else
#define SF_COPY_IS_TEXT(copy) (!(copy)->opts.binary && !(copy)->opts.csv_mode)
#define SF_COPY_IS_CSV(copy) ((copy)->opts.csv_mode)
#endif

// A column's default, and whether a mark in the data stands for it.
#if PG_VERSION_NUM >= 160000
#define SF_COPY_DEFAULT(copy, i) ((copy)->defexprs[(copy)->defmap[i]])
#define SF_COPY_HAS_MARK(copy) ((copy)->opts.default_print != nullptr)
#else
#define SF_COPY_DEFAULT(copy, i) ((copy)->defexprs[i])
#define SF_COPY_HAS_MARK(copy) false
#endif

// ---- a place on each target (pg/ingest/ingest.cpp; copyfrom.c) ----------------------------------

// COPY keeps its buffer for a target here, in executors of its own; every other executor begins
// with nullptr and never looks. So an ingest has its table here until it ends. If the executor
// read or freed it, or COPY shared a target with an ingest, the server would take one for the
// other and crash: then a hash table by target has to do.
SF_PRIVATE(ResultRelInfo, ri_CopyMultiInsertBuffer, CopyMultiInsertBuffer*);

inline void* kept_on_target(const ResultRelInfo* target) {
  return target->ri_CopyMultiInsertBuffer;
}
inline void keep_on_target(ResultRelInfo* target, void* kept) {
  target->ri_CopyMultiInsertBuffer = static_cast<CopyMultiInsertBuffer*>(kept);
}

// ---- bulk inserts (pg/ingest/batch_writer.cpp; hio.c and heapam.c) ------------------------------

// nullptr means the usual replacement of buffers, to who reads pages and to FreeBulkInsertState().
// If one of them took it for a ring, a batch would crash.
SF_PRIVATE(BulkInsertStateData, strategy, BufferAccessStrategy);

// ---- slots (pg/fdw/batch_scan.cpp; execTuples.c) ------------------------------------------------

// A cleared slot of a heap tuple becomes a full one, as by ExecStoreHeapTuple(), by these, the
// flag, tts_tid and tts_tableOid. With more to set, columns would be read from another row.
SF_PRIVATE(HeapTupleTableSlot, tuple, HeapTuple);
SF_PRIVATE(HeapTupleTableSlot, tupdata, HeapTupleData);

#undef SF_PRIVATE
