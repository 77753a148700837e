#include "pg/server/postgres.hpp"

extern "C" {
#include "parser/parse_collate.h"
#include "utils/regproc.h"
}

#include "pg/catalog/column_coercion.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/key/hash_method.hpp"
#include "pg/key/key_hash.hpp"

namespace streamfilter::pg {

struct Coercion {
  enum Way : uint8 { input_function, expression } way;
  bool to_domain;  // a domain may refuse NULL
  bool as_owner;   // runs as the owner of the filter or table, who has chosen the code
  bool untrusted;  // code that is not trusted may run
  Oid relation;
  Oid owner;
  Oid io_param;
  int32 typmod;
  const char* column;  // "column ... of filter ...", for errors; nullptr: the caller says it
  FmgrInfo input;
  ExprState* state;  // reads its argument as a CaseTestExpr
  ExprContext* econtext;
};

namespace {

const char* name_or_empty(const FilterRelation* filter) { return filter ? filter->name : ""; }

[[noreturn]] void raise_mismatch(Oid source, const FilterColumn* column,
                                 const FilterRelation* filter, const char* what) {
  ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
          errmsg("%s is of type %s, but column \"%s\" of filter \"%s\" is of type %s", what,
                 format_type_be(source), column->name, name_or_empty(filter),
                 format_type_be(column->type)),
          errhint("Only implicit casts are applied: add an explicit cast, or change one of the two "
                  "types."));
}

// The incoming value, wrapped in the expressions that make it a value of the type; nullptr: none
// do.
Node* build_cast(Oid source, int32 source_typmod, Oid type, int32 typmod, CoercionContext context) {
  // An anonymous row can be cast to a named type only with its expression at hand.
  if (source == RECORDOID && source != getBaseType(type)) return nullptr;
  CaseTestExpr* value = makeNode(CaseTestExpr);
  value->typeId = source;
  value->typeMod = source_typmod;
  value->collation = get_typcollation(source);
  return coerce_to_target_type(nullptr, reinterpret_cast<Node*>(value), source, type, typmod,
                               context, COERCE_IMPLICIT_CAST, -1);
}

bool is_relabelling(Node* cast) {
  while (IsA(cast, RelabelType))
    cast = reinterpret_cast<Node*>(reinterpret_cast<RelabelType*>(cast)->arg);
  return IsA(cast, CaseTestExpr);
}

// ---- whose code it is ---------------------------------------------------------------------------
// A cast belongs to one of its two types. If the value's type is trusted, it belongs to the
// column's: the filter's owner has chosen it, and it runs as the owner. In the opposite case the
// role that gives the value has chosen it, and nothing changes. If neither type is trusted, the
// cast could be a trap for either role, unless the owner trusts the function's owner anyway.

Oid owner_of_type(Oid type) {
  return read_field(TYPEOID, type, &FormData_pg_type::typowner, InvalidOid);
}

struct CastCode {
  bool functions;    // is there a function that is not trusted?
  bool domains;      // is there a domain?
  bool constraints;  // … with checks? Set only if `look_at_domains`
  bool look_at_domains;
  Oid stranger;  // a function that neither `owner` nor `type_owner` nor a superuser has made
  Oid owner, type_owner;
};

bool find_code(Node* node, void* context) {
  auto* code = static_cast<CastCode*>(context);
  if (node == nullptr) return false;
  if (IsA(node, FuncExpr)) {
    const Oid function = reinterpret_cast<FuncExpr*>(node)->funcid;
    if (!is_trusted_function(function)) {
      code->functions = true;
      const Oid maker = read_field(PROCOID, function, &FormData_pg_proc::proowner, InvalidOid);
      if (maker != code->owner && maker != code->type_owner && !superuser_arg(maker))
        code->stranger = function;
    } else if (function < FirstNormalObjectId) {
      // The function may look for casts of its argument: to_jsonb does.
      for (auto* argument : each<Node>(reinterpret_cast<FuncExpr*>(node)->args))
        if (!is_trusted_type(exprType(argument))) code->functions = true;
    }
  } else if (IsA(node, CoerceToDomain)) {
    code->domains = true;
    if (code->look_at_domains &&
        SF_DOMAIN_HAS_CONSTRAINTS(reinterpret_cast<CoerceToDomain*>(node)->resulttype))
      code->constraints = true;
  } else if (!IsA(node, RelabelType) && !IsA(node, CaseTestExpr) && !IsA(node, Const) &&
             !IsA(node, ArrayCoerceExpr)) {
    code->functions = true;
  }
  return SF_WALK_EXPRESSION(node, find_code, context);
}

// Is the filter's owner responsible for the code of this cast? Raises 42804 if nobody is.
bool is_owners_code(Node* cast, Oid source, const FilterColumn* column,
                    const FilterRelation* filter, const char* what) {
  if (filter == nullptr || is_trusted_type(column->type)) return false;
  CastCode code = {};
  code.owner = filter->owner;
  code.type_owner = owner_of_type(column->type);
  find_code(cast, &code);
  if (OidIsValid(code.stranger) && !is_trusted_type(getBaseType(source)))
    ereport(
        ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
        errmsg("%s of type %s cannot be cast to type %s for column \"%s\" of filter \"%s\"", what,
               format_type_be(source), format_type_be(column->type), column->name, filter->name),
        errdetail("Function %s would run as the owner of the filter, who has not made it.",
                  format_procedure(code.stranger)),
        errhint("Add an explicit cast."));
  return code.functions || code.domains;
}

// Domains have few secrets, but looking at them may run constant parts of their checks.
bool runs_code(Node* cast) {
  CastCode code = {};
  code.look_at_domains = true;
  find_code(cast, &code);
  return code.functions || code.constraints;
}

bool may_run_code(Node* cast) {
  CastCode code = {};
  find_code(cast, &code);
  return code.functions || code.domains;
}

// Input functions of other types run only their own code.
bool input_runs_code(Oid type) {
  if (const Oid element = get_element_type(type); OidIsValid(element)) type = element;
  if (type < FirstNormalObjectId) return false;
  const char kind = get_typtype(type);
  return kind != TYPTYPE_BASE && kind != TYPTYPE_ENUM;
}

void prepare_expression(Coercion* coercion, Node* cast) {
  assign_expr_collations(nullptr, cast);
  fix_opfuncids(cast);
  coercion->state = ExecInitExpr(reinterpret_cast<Expr*>(cast), nullptr);
  coercion->econtext = CreateStandaloneExprContext();
}

Datum convert(Coercion* coercion, Datum value, bool* isnull) {
  if (coercion->way == Coercion::input_function)
    // Called for NULL, too: domain_in refuses it if the domain does.
    return InputFunctionCall(&coercion->input, *isnull ? nullptr : DatumGetCString(value),
                             coercion->io_param, coercion->typmod);
  if (*isnull && !coercion->to_domain) return value;
  // Evaluated in the caller's context, where the result must live. Memory that the expression
  // leaves in its own context is freed at the next call, so a result may point there.
  ExprContext* econtext = coercion->econtext;
  ResetExprContext(econtext);
  econtext->caseValue_datum = value;
  econtext->caseValue_isNull = *isnull;
  return ExecEvalExpr(coercion->state, econtext, isnull);
}

pg_noinline Datum convert_as_owner(Coercion* coercion, Datum value, bool* isnull) {
  const Caller caller = become_owner(coercion->relation, coercion->owner);
  const Datum result = convert(coercion, value, isnull);
  return_to(caller);
  return result;
}

}  // namespace

Coercion* make_coercion(Oid source, const FilterColumn* column, const FilterRelation* filter,
                        const char* what, int32 source_typmod) {
  Fault fault;
  if (!check_type(source, what, fault)) raise(fault);
  Coercion* coercion = allocate_zeros<Coercion>();
  coercion->typmod = column->typmod;
  coercion->relation = filter ? filter->relid : InvalidOid;
  coercion->owner = filter ? filter->owner : InvalidOid;
  if (filter != nullptr)
    coercion->column = psprintf("column \"%s\" of filter \"%s\"", column->name, filter->name);
  if (source == UNKNOWNOID) {
    Oid function;
    getTypeInputInfo(column->type, &function, &coercion->io_param);
    fmgr_info(function, &coercion->input);
    coercion->untrusted = input_runs_code(column->type);
    coercion->as_owner = filter != nullptr && coercion->untrusted;
    coercion->way = Coercion::input_function;
    return coercion;
  }
  Node* cast = build_cast(source, source_typmod, column->type, column->typmod, COERCION_IMPLICIT);
  if (cast == nullptr) raise_mismatch(source, column, filter, what);
  if (is_relabelling(cast)) {
    pfree(coercion);
    return nullptr;
  }
  coercion->way = Coercion::expression;
  coercion->to_domain = get_typtype(column->type) == TYPTYPE_DOMAIN;
  coercion->untrusted = may_run_code(cast);
  if (!is_owners_code(cast, source, column, filter, what)) {
    prepare_expression(coercion, cast);
    return coercion;
  }
  const Caller caller = become_owner(filter->relid, filter->owner);
  coercion->as_owner = runs_code(cast);
  prepare_expression(coercion, cast);
  return_to(caller);
  return coercion;
}

Coercion* make_table_coercion(Oid source, int32 source_typmod, const TableColumn& column,
                              const char* what) {
  CastCode code = {};
  code.owner = column.owner;
  code.type_owner = owner_of_type(column.type);
  Node* cast = build_cast(source, source_typmod, column.type, -1, COERCION_EXPLICIT);
  // A value that is too long is refused, as by INSERT; an explicit cast would cut it.
  if (cast != nullptr)
    cast = coerce_to_target_type(nullptr, cast, column.type, column.type, column.typmod,
                                 COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1);
  if (cast != nullptr) find_code(cast, &code);
  if (cast == nullptr || OidIsValid(code.stranger))
    ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
            errmsg("%s of type %s cannot be cast to type %s of column \"%s\" of table \"%s\"", what,
                   format_type_be(source), format_type_be(column.type), column.name,
                   get_rel_name(column.table)),
            cast == nullptr
                ? 0
                : errdetail("Function %s would run as the owner of the table, who has not made it.",
                            format_procedure(code.stranger)),
            errhint("Give both columns the same type."));
  if (is_relabelling(cast)) return nullptr;
  auto* coercion = allocate_zeros<Coercion>();
  coercion->way = Coercion::expression;
  coercion->typmod = column.typmod;
  coercion->relation = column.table;
  coercion->owner = column.owner;
  coercion->to_domain = get_typtype(column.type) == TYPTYPE_DOMAIN;
  coercion->as_owner = code.functions || code.domains;
  const Caller caller = become_owner(column.table, column.owner);
  prepare_expression(coercion, cast);
  return_to(caller);
  return coercion;
}

bool runs_untrusted_code(const Coercion* coercion) {
  return coercion != nullptr && coercion->untrusted;
}

// "value too long for type character varying(4)" would not tell whose type that is.
Datum run_coercion(Coercion* coercion, Datum value, bool* isnull) {
  ErrorContextCallback context = {
      error_context_stack, [](void* column) { errcontext("%s", static_cast<const char*>(column)); },
      const_cast<char*>(coercion->column)};
  if (coercion->column != nullptr) error_context_stack = &context;
  const Datum result = unlikely(coercion->as_owner) ? convert_as_owner(coercion, value, isnull)
                                                    : convert(coercion, value, isnull);
  error_context_stack = context.previous;
  return result;
}

}  // namespace streamfilter::pg
