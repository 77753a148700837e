#include "pg/server/postgres.hpp"

extern "C" {
#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "nodes/parsenodes.h"
}

#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/server_options.hpp"

// streamfilter_fdw_validator(options text[], catalog oid): checks the options of every object of
// the wrapper as they are set.
SF_FUNCTION(streamfilter_fdw_validator) {
  using namespace streamfilter::pg;
  List* options = untransformRelOptions(PG_GETARG_DATUM(0));
  switch (PG_GETARG_OID(1)) {
    case ForeignTableRelationId: {
      HostOptions host;
      read_table_options(options, &host);
      break;
    }
    case AttributeRelationId: read_column_options(options); break;
    case ForeignServerRelationId: read_server_options(options); break;
    case UserMappingRelationId: check_user_mapping_options(options); break;
    default:
      if (options != NIL)
        raise_unknown_option(static_cast<DefElem*>(linitial(options)), "foreign-data wrapper",
                             nullptr);
  }
  PG_RETURN_VOID();
}
