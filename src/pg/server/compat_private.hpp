// What is known here of structs that the server keeps for itself, though a header shows them; only
// files that need it include this. All of it is so in PostgreSQL 15 to 19. The compiler finds a
// field that is gone. What a field means no compiler tells: before a new major version, hold each
// paragraph against the server's source.
#pragma once

extern "C" {
#include "access/hio.h"
#include "commands/copyfrom_internal.h"
#include "executor/nodeAgg.h"
}

// CopyFromStateData (pg/ingest/copy_ingest.cpp; the server's copyfrom.c and copyfromparse.c)
//
// copy_src, data_source_cb, copy_file, is_program, filename: where COPY reads. Whenever its buffers
// are empty it asks the callback, if that is its source, and keeps no other way to the bytes;
// otherwise it would go on reading rows that were inserted here. At its end it closes the program
// or file that the last three name; they are cleared where the program was closed before, or it
// would be closed twice.
//
// input_buf, input_buf_index, input_buf_len, input_reached_eof, input_reached_error, raw_buf_index,
// raw_buf_len, raw_reached_eof: how far it has come. No other field tells; these are set aside and
// brought back as one. If there were one more, our rows would begin at another byte than the one
// where COPY's row has ended. Where nothing is converted, both buffers are one, and the text in it
// is valid up to input_buf_len.
//
// cur_lineno, cur_attname, cur_attval, line_buf, line_buf_valid: the line that messages tell of, by
// CopyFromErrorCallback(); the number is raised before a line is read. Otherwise an error names
// another line, and no row is affected.
//
// eol_type, attnumlist, raw_fields, in_functions, typioparams, num_defaults, defmap, defexprs,
// convert_select_flags, opts: how a plain line becomes values. COPY's own first line has told how
// lines end. raw_fields has a place for each column of attnumlist; functions and types are by
// column, and so are defaults since 16. has_plain_lines() must know every option that changes what
// a plain line means, or values are read wrongly.
//
// rel, copycontext, qualexpr, whereClause, volatile_defexprs, transition_capture, opts.freeze: what
// rows are inserted with. open_target() repeats the beginning of CopyFrom(); what that would do
// besides, all rows after the first would lack.

#if PG_VERSION_NUM >= 180000
#define SF_INIT_COPY_RANGE_TABLE(estate, copy) \
  ExecInitRangeTable(estate, (copy)->range_table, (copy)->rteperminfos, bms_make_singleton(1))
#elif PG_VERSION_NUM >= 160000
#define SF_INIT_COPY_RANGE_TABLE(estate, copy) \
  ExecInitRangeTable(estate, (copy)->range_table, (copy)->rteperminfos)
#else
#define SF_INIT_COPY_RANGE_TABLE(estate, copy) ExecInitRangeTable(estate, (copy)->range_table)
#endif

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

#if PG_VERSION_NUM >= 160000
#define SF_COPY_DEFAULT(copy, i) ((copy)->defexprs[(copy)->defmap[i]])
#define SF_COPY_HAS_MARK(copy) ((copy)->opts.default_print != nullptr)
#else
#define SF_COPY_DEFAULT(copy, i) ((copy)->defexprs[i])
#define SF_COPY_HAS_MARK(copy) false
#endif

// ResultRelInfo::ri_CopyMultiInsertBuffer (pg/ingest/ingest.cpp; copyfrom.c): COPY keeps its buffer
// for a target here, in executors of its own; every other executor begins with nullptr and never
// looks. So an ingest has its table here until it ends. If the executor read or freed it, or COPY
// shared a target with an ingest, one would be taken for the other, and the server crash: then a
// hash table by target has to do.

inline void* kept_on_target(const ResultRelInfo* by) { return by->ri_CopyMultiInsertBuffer; }
inline void keep_on_target(ResultRelInfo* target, void* kept) {
  target->ri_CopyMultiInsertBuffer = static_cast<CopyMultiInsertBuffer*>(kept);
}

// AggState::pertrans, numtrans, AggStatePerTransData::serialfn, aggref (pg/value/growing_state.cpp;
// nodeAgg.c): whose state a serialization function gets, for AggGetAggref() does not know there.
// The executor calls it by this FmgrInfo. Otherwise a process without a row would send NULL.

// nullptr: this is no serialization function.
inline const Aggref* serialized_call(const AggState* aggregate, const FmgrInfo* function) {
  for (int i = 0; i < aggregate->numtrans; ++i)
    if (&aggregate->pertrans[i].serialfn == function) return aggregate->pertrans[i].aggref;
  return nullptr;
}

// BulkInsertStateData::strategy (batch_writer.cpp; hio.c and heapam.c): nullptr means the usual
// replacement of buffers, also to FreeBulkInsertState(). Otherwise a batch would crash.
//
// HeapTupleTableSlot::tuple, tupdata (batch_scan.cpp; execTuples.c): by these, the flag, tts_tid
// and tts_tableOid a cleared slot becomes a full one, as by ExecStoreHeapTuple(). With more to set,
// columns would be read from another row.
