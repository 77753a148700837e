#include "pg/server/postgres.hpp"

extern "C" {
#include "nodes/parsenodes.h"
#include "parser/parser.h"
}

#include "pg/server/condition_text.hpp"

namespace streamfilter::pg {
namespace {

// The error position is one in this text, not in the client's statement.
void say_where(void* arg) {
  const int position = geterrposition();
  if (position <= 0) return;
  errposition(0);
  internalerrposition(position);
  internalerrquery(static_cast<const char*>(arg));
}

// Parses as PL/pgSQL parses an expression: the part after SELECT.
const SelectStmt* parse(const char* text) {
  ErrorContextCallback context = {error_context_stack, say_where, const_cast<char*>(text)};
  error_context_stack = &context;
  const List* statements = raw_parser(text, RAW_PARSE_PLPGSQL_EXPR);
  error_context_stack = context.previous;
  return castNode(SelectStmt, linitial_node(RawStmt, statements)->stmt);
}

bool is_one_expression(const SelectStmt* parsed) {
  return parsed->op == SETOP_NONE && list_length(parsed->targetList) == 1 &&
         linitial_node(ResTarget, parsed->targetList)->name == nullptr &&
         parsed->distinctClause == NIL && parsed->fromClause == NIL &&
         parsed->whereClause == nullptr && parsed->groupClause == NIL &&
         parsed->havingClause == nullptr && parsed->windowClause == NIL &&
         parsed->sortClause == NIL && parsed->limitOffset == nullptr &&
         parsed->limitCount == nullptr && parsed->lockingClause == NIL;
}

}  // namespace

void check_condition(const char* text, const char* argument, const char* function) {
  if (is_one_expression(parse(text))) return;
  ereport(ERROR, errcode(ERRCODE_SYNTAX_ERROR),
          errmsg("argument \"%s\" of %s must be one condition", argument, function),
          errdetail("It is \"%s\".", text),
          errhint("Write what follows WHERE, as an expression of type boolean."));
}

}  // namespace streamfilter::pg
