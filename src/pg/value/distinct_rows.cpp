// streamfilter_distinct: the first occurrences of a query's rows, in constant memory.
#include "pg/server/postgres.hpp"

#include "pg/catalog/column_coercion.hpp"
#include "pg/catalog/element_roles.hpp"
#include "pg/server/progress.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kFunction = "streamfilter_distinct";
constexpr int kBatch = 128;  // rows per fetch

// A row, taken apart.
struct Row {
  Datum* values;
  bool* isnull;
};

// Columns of the query that make up the key.
struct Key {
  int count;
  int* columns;  // of the query, from 0
  TypeHasher** hashers;
  Row row;
  KeyRule rule;
  WordKey word;
};

// Converts a row of the query to a row of the result.
struct Conversion {
  TupleDesc source;
  TupleDesc target;
  bool scalar;      // the result is one value instead of a row
  int* attributes;  // by column of the query: attribute of the result, from 0
  Coercion** coercions;
  Row to;  // columns dropped from the row type stay NULL
};

Row make_row(int columns) {
  Row row;
  row.values = allocate_zeros<Datum>(columns + 1);
  row.isnull = allocate<bool>(columns + 1);
  memset(row.isnull, true, columns + 1);
  return row;
}

int live_attributes(TupleDesc descriptor) {
  int count = 0;
  for (int i = 0; i < descriptor->natts; ++i) count += !TupleDescAttr(descriptor, i)->attisdropped;
  return count;
}

// Only implicit casts, as for function arguments.
Coercion* make_column_coercion(const Conversion& conversion, int column, int attribute) {
  const FormData_pg_attribute* source = TupleDescAttr(conversion.source, column);
  const FormData_pg_attribute* target = TupleDescAttr(conversion.target, attribute);
  if (can_coerce_type(1, &source->atttypid, &target->atttypid, COERCION_IMPLICIT)) {
    const FilterColumn place{target->attnum,
                             Role::key,
                             target->atttypid,
                             target->atttypmod,
                             target->attcollation,
                             NameStr(target->attname),
                             getBaseType(target->atttypid)};
    return make_coercion(source->atttypid, &place, nullptr, "a column", source->atttypmod);
  }
  const char* name = NameStr(source->attname);
  const char* wanted = format_type_with_typemod(target->atttypid, target->atttypmod);
  const char* place = conversion.scalar
                          ? "the row type"
                          : psprintf("column \"%s\" of the row type", NameStr(target->attname));
  ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                  errmsg("column \"%s\" of the query does not fit the row type", name),
                  errdetail("Column %d of the query is of type %s, %s is %s.", column + 1,
                            format_type_be(source->atttypid), place, wanted),
                  errhint("Only implicit casts are applied. Cast it in the query: CAST(%s AS %s).",
                          quote_identifier(name), wanted)));
}

Conversion make_conversion(TupleDesc source, TupleDesc target, bool scalar) {
  if (source->natts != live_attributes(target))
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("the query does not fit the row type"),
             errdetail("The number of columns is %d in the query and %d in the row type.",
                       source->natts, live_attributes(target)),
             errhint("Select the columns of the row type, in its order.")));
  Conversion conversion;
  conversion.source = source;
  conversion.target = target;
  conversion.scalar = scalar;
  conversion.attributes = allocate<int>(source->natts + 1);
  conversion.coercions = allocate<Coercion*>(source->natts + 1);
  conversion.to = make_row(target->natts);
  int column = 0;
  for (int i = 0; i < target->natts; ++i) {
    if (TupleDescAttr(target, i)->attisdropped) continue;
    conversion.coercions[column] = make_column_coercion(conversion, column, i);
    conversion.attributes[column++] = i;
  }
  return conversion;
}

// The column of the query at the place of the result's column with this name.
int find_column(const Conversion& conversion, const char* name) {
  NearestName nearest(name);
  for (int i = 0; i < conversion.source->natts; ++i) {
    const char* known =
        conversion.scalar
            ? NameStr(TupleDescAttr(conversion.source, i)->attname)
            : NameStr(TupleDescAttr(conversion.target, conversion.attributes[i])->attname);
    if (strcmp(known, name) == 0) return i;
    nearest.consider(known);
  }
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                  errmsg("key column \"%s\" does not exist in the row type", name),
                  nearest.name() != nullptr
                      ? errhint("Perhaps you meant the column \"%s\".", nearest.name())
                      : errhint("Name columns of the row type, or leave out the key to use all.")));
}

[[noreturn]] void raise_bad_key(int code, const char* message) {
  ereport(ERROR, (errcode(code), errmsg("%s", message),
                  errhint("Name one or more columns, or leave out the key to use all.")));
}

// Resolves argument "key"; nullptr: all columns.
Key make_key(const Conversion& conversion, ArrayType* names, const KeyRule& rule) {
  const int columns = conversion.source->natts;
  Key key;
  key.count = columns;
  key.columns = allocate<int>(columns + 1);
  for (int i = 0; i < columns; ++i) key.columns[i] = i;
  if (names != nullptr) {
    Datum* elements;
    bool* isnull;
    int count;
    deconstruct_array(names, TEXTOID, -1, false, TYPALIGN_INT, &elements, &isnull, &count);
    key.count = 0;
    for (int i = 0; i < count; ++i) {
      if (isnull[i])
        raise_bad_key(ERRCODE_NULL_VALUE_NOT_ALLOWED,
                      gettext_noop("a key column must not be null"));
      const int column = find_column(conversion, TextDatumGetCString(elements[i]));
      for (int j = 0; j < key.count; ++j)
        if (key.columns[j] == column)
          raise_bad_key(ERRCODE_DUPLICATE_COLUMN, gettext_noop("a key column is named twice"));
      key.columns[key.count++] = column;
    }
  }
  if (key.count == 0)
    raise_bad_key(ERRCODE_INVALID_PARAMETER_VALUE, gettext_noop("the key has no columns"));
  key.hashers = allocate<TypeHasher*>(key.count);
  key.row = make_row(key.count);
  for (int i = 0; i < key.count; ++i) {
    const FormData_pg_attribute* column = TupleDescAttr(conversion.source, key.columns[i]);
    key.hashers[i] =
        make_type_hasher(column->atttypid, column->attcollation,
                         psprintf("column \"%s\" of the query", NameStr(column->attname)));
  }
  key.rule = rule;
  key.word = word_key(key.hashers, key.count, rule);
  return key;
}

// Rows of the query that go through the filter together.
struct RowBatch {
  int count;
  Row rows[kBatch];
  Element elements[kBatch];
  bool has_key[kBatch];
  bool seen[kBatch];
};

RowBatch* make_batch(int columns) {
  auto* batch = allocate<RowBatch>();
  for (Row& row : batch->rows) row = make_row(columns);
  return batch;
}

// A row without a key is no repeat.
bool hash_row(const Key& key, const Row& row, uint64* hash) {
  const int first = key.columns[0];
  if (key.word != WordKey::no && !row.isnull[first]) {
    *hash = hash_word_key(key.word, row.values[first], key.rule.seed);
    return true;
  }
  for (int i = 0; i < key.count; ++i) {
    key.row.values[i] = row.values[key.columns[i]];
    key.row.isnull[i] = row.isnull[key.columns[i]];
  }
  return hash_key(key.hashers, key.row.values, key.row.isnull, key.count, key.rule, hash);
}

void read_batch(RowBatch* batch, const Key& key, TupleDesc source, const Parameters& parameters) {
  batch->count = static_cast<int>(SPI_processed);
  for (int i = 0; i < batch->count; ++i) {
    heap_deform_tuple(SPI_tuptable->vals[i], source, batch->rows[i].values, batch->rows[i].isnull);
    batch->elements[i] = new_element(parameters);
    batch->has_key[i] = hash_row(key, batch->rows[i], &batch->elements[i].hash);
  }
}

void put_result_row(const Conversion& conversion, const Row& row, Tuplestorestate* result) {
  for (int i = 0; i < conversion.source->natts; ++i) {
    const int attribute = conversion.attributes[i];
    bool isnull = row.isnull[i];
    conversion.to.values[attribute] = coerce(conversion.coercions[i], row.values[i], &isnull);
    conversion.to.isnull[attribute] = isnull;
  }
  tuplestore_putvalues(result, conversion.target, conversion.to.values, conversion.to.isnull);
}

// Reads the query to its end, and puts rows that are no repeats into the result.
void run_query(Portal portal, const Key& key, const Conversion& conversion, Header* filter,
               Tuplestorestate* result) {
  RowBatch* batch = make_batch(conversion.source->natts);
  Progress progress(Command::distinct, InvalidOid, kFunction);
  read_in_batches(portal, kBatch, &progress, [&] {
    read_batch(batch, key, conversion.source, filter->parameters);
    insert_many(filter, batch->elements, batch->has_key, static_cast<Size>(batch->count),
                batch->seen);
    for (int i = 0; i < batch->count; ++i)
      if (!batch->seen[i]) put_result_row(conversion, batch->rows[i], result);
    return true;
  });
}

// Opens the result; `scalar` tells whether its rows are of a scalar type.
ReturnSetInfo* open_result(FunctionCallInfo fcinfo, bool* scalar) {
  Oid type;
  const TypeFuncClass type_class = get_call_result_type(fcinfo, &type, nullptr);
  *scalar = type_class == TYPEFUNC_SCALAR;
  if (type_class == TYPEFUNC_COMPOSITE_DOMAIN)
    ereport(
        ERROR,
        (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
         errmsg("streamfilter_distinct cannot return rows of domain %s", format_type_be(type)),
         errhint("Use the type below the domain: NULL::%s.", format_type_be(getBaseType(type)))));
  ReturnSetInfo* set = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  if (set != nullptr && IsA(set, ReturnSetInfo) && set->expectedDesc == nullptr)
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("streamfilter_distinct needs to know the columns of its rows"),
                    errhint("Call it in FROM, with a column definition list for type record.")));
  InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
  return set;
}

}  // namespace

// streamfilter_distinct(row_type anyelement, query text, prototype streamfilter [, key text[]]).
// The query runs with the caller's rights. A row with a NULL in its key always stays, unless the
// prototype has nulls = not distinct.
SF_FUNCTION(streamfilter_distinct) {
  require_arguments(fcinfo, {1, 2});
  bool scalar;
  ReturnSetInfo* set = open_result(fcinfo, &scalar);
  const char* query = text_to_cstring(PG_GETARG_TEXT_PP(1));
  ArrayType* names = PG_ARGISNULL(3) ? nullptr : PG_GETARG_ARRAYTYPE_P(3);

  SPI_connect();
  Header* filter = copy_value(get_value(PG_GETARG_DATUM(2)), CurrentMemoryContext);
  require_promise(filter);
  Portal portal = open_query(query, kFunction);
  const Conversion conversion = make_conversion(portal->tupDesc, set->setDesc, scalar);
  const Key key = make_key(conversion, names, key_rule(filter->parameters));
  run_query(portal, key, conversion, filter, set->setResult);
  SPI_finish();
  return static_cast<Datum>(0);
}

}  // namespace streamfilter::pg
