#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
}

#include "pg/catalog/column_coercion.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

struct Coercion {
  enum Way : uint8 { identity, input_function, expression } way;
  bool to_domain;  // a domain may refuse NULL
  Oid io_param;
  int32 typmod;
  FmgrInfo input;
  ExprState* state;  // reads its argument as a CaseTestExpr
  ExprContext* econtext;
};

namespace {

[[noreturn]] void raise_mismatch(Oid source, const FilterColumn* column, const char* filter,
                                 const char* what) {
  ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
          errmsg("%s is of type %s, but column \"%s\" of filter \"%s\" is of type %s", what,
                 format_type_be(source), column->name, filter, format_type_be(column->type)),
          errhint("Only implicit casts are applied: add an explicit cast, or change one of the two "
                  "types."));
  pg_unreachable();
}

// The value as it comes in, wrapped in whatever makes it a value of the column.
Node* build_cast(Oid source, int32 source_typmod, const FilterColumn* column, const char* filter,
                 const char* what) {
  // A row without a declared type casts to a named one only where its expression is at hand.
  if (source == RECORDOID && source != getBaseType(column->type))
    raise_mismatch(source, column, filter, what);
  CaseTestExpr* value = makeNode(CaseTestExpr);
  value->typeId = source;
  value->typeMod = source_typmod;
  value->collation = get_typcollation(source);
  Node* cast = coerce_to_target_type(nullptr, reinterpret_cast<Node*>(value), source, column->type,
                                     column->typmod, COERCION_IMPLICIT, COERCE_IMPLICIT_CAST, -1);
  if (cast == nullptr) raise_mismatch(source, column, filter, what);
  return cast;
}

bool is_relabelling(Node* cast) {
  while (IsA(cast, RelabelType))
    cast = reinterpret_cast<Node*>(reinterpret_cast<RelabelType*>(cast)->arg);
  return IsA(cast, CaseTestExpr);
}

}  // namespace

Coercion* make_coercion(Oid source, const FilterColumn* column, const char* filter,
                        const char* what, int32 source_typmod) {
  Coercion* coercion = static_cast<Coercion*>(palloc0(sizeof(Coercion)));
  coercion->typmod = column->typmod;
  if (source == UNKNOWNOID) {
    Oid function;
    getTypeInputInfo(column->type, &function, &coercion->io_param);
    fmgr_info(function, &coercion->input);
    coercion->way = Coercion::input_function;
    return coercion;
  }
  Node* cast = build_cast(source, source_typmod, column, filter, what);
  if (is_relabelling(cast)) {
    coercion->way = Coercion::identity;
    return coercion;
  }
  assign_expr_collations(nullptr, cast);
  fix_opfuncids(cast);
  coercion->way = Coercion::expression;
  coercion->to_domain = get_typtype(column->type) == TYPTYPE_DOMAIN;
  coercion->state = ExecInitExpr(reinterpret_cast<Expr*>(cast), nullptr);
  coercion->econtext = CreateStandaloneExprContext();
  return coercion;
}

Datum coerce(Coercion* coercion, Datum value, bool* isnull) {
  switch (coercion->way) {
    case Coercion::identity: return value;
    case Coercion::input_function:
      // Called for NULL too: domain_in refuses it where the domain does.
      return InputFunctionCall(&coercion->input, *isnull ? nullptr : DatumGetCString(value),
                               coercion->io_param, coercion->typmod);
    case Coercion::expression: break;
  }
  if (*isnull && !coercion->to_domain) return value;
  // Evaluated in the caller's context, where the result has to live. What steps of the expression
  // leave in the context's own memory goes at the next call, so that a result may point there.
  ExprContext* econtext = coercion->econtext;
  ResetExprContext(econtext);
  econtext->caseValue_datum = value;
  econtext->caseValue_isNull = *isnull;
  return ExecEvalExpr(coercion->state, econtext, isnull);
}

}  // namespace streamfilter::pg
