#include "pg/server/postgres.hpp"

extern "C" {
#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
}

#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/server_options.hpp"

namespace streamfilter::pg {
namespace {

bool check_options(List* options, Oid of, Fault& fault) {
  switch (of) {
    case ForeignTableRelationId: {
      Definition definition;
      RelationOptions relation_options;
      if (read_table_options(options, &definition, &relation_options, fault)) return true;
      if (Fault of_default; !takes_fpr(options, kDefaultFpr, of_default) && of_default)
        fault = of_default;
      return false;
    }
    case AttributeRelationId: {
      Role role;
      return read_column_options(options, &role, fault);
    }
    case ForeignServerRelationId: {
      ServerOptions server;
      return read_server_options(options, &server, fault);
    }
    case UserMappingRelationId: return check_user_mapping_options(options, fault);
    default:
      return options == NIL || unknown_option(static_cast<DefElem*>(linitial(options)),
                                              "foreign-data wrapper", nullptr, fault);
  }
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_fdw_validator(options text[], catalog oid): checks the options of every object of
// the wrapper as they are set.
SF_FUNCTION(streamfilter_fdw_validator) {
  Fault fault;
  if (!check_options(untransformRelOptions(PG_GETARG_DATUM(0)), PG_GETARG_OID(1), fault))
    raise(fault);
  PG_RETURN_VOID();
}
