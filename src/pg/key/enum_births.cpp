#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_enum.h"
#include "catalog/pg_seclabel.h"
#include "commands/seclabel.h"
#include "utils/varlena.h"
}

#include <utility>

#include "core/base/hash.hpp"
#include "pg/key/enum_births.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kProvider[] = "streamfilter";
constexpr int kLongestBirth = NAMEDATALEN + 16;

// ---- the security label -------------------------------------------------------------------------

// Lists of births have label and birth in turn. They are written as GUC_LIST_QUOTE has lists.
const char* text_at(const List* births, int i) {
  return static_cast<const char*>(list_nth(births, i));
}

List* births_in(const char* printed) {
  List* births = NIL;
  return SplitGUCList(pstrdup(printed), ',', &births) ? births : NIL;
}

const char* print(const List* births) {
  const char* text = "";
  for (int i = 0; i < list_length(births); ++i)
    text = psprintf("%s%s%s", text, i > 0 ? "," : "", quote_identifier(text_at(births, i)));
  return text;
}

List* births_of(Oid type, Snapshot snapshot) {
  List* births = NIL;
  scan_catalog<FormData_pg_seclabel>(
      SecLabelRelationId, SecLabelObjectIndexId,
      {{Anum_pg_seclabel_objoid, type}, {Anum_pg_seclabel_classoid, TypeRelationId}},
      [&](const FormData_pg_seclabel&, HeapTuple tuple, TupleDesc columns) {
        bool none;
        const auto read = [&](int column) {
          return TextDatumGetCString(heap_getattr(tuple, column, columns, &none));
        };
        if (strcmp(read(Anum_pg_seclabel_provider), kProvider) == 0)
          births = births_in(read(Anum_pg_seclabel_label));
      },
      snapshot);
  return births;
}

// The place of a text among labels (odd = 0) or births (odd = 1); -1: it is not there.
int find(const List* births, int odd, const char* name) {
  for (int i = odd; i < list_length(births); i += 2)
    if (strcmp(text_at(births, i), name) == 0) return i - odd;
  return -1;
}

const char* born_as(const List* births, const char* label) {
  const int at = find(births, 0, label);
  return at < 0 ? label : text_at(births, at + 1);
}

// ---- what the session knows ---------------------------------------------------------------------

struct KnownValue {
  Oid value;
  int length;
  char born[kLongestBirth];
};

HTAB* known_values = nullptr;
bool is_stale = true;

HTAB* values_known_now() {
  if (unlikely(is_stale)) {
    if (known_values != nullptr) hash_destroy(std::exchange(known_values, nullptr));
    known_values = make_hash_table<Oid, KnownValue>("streamfilter enum values", 32);
    is_stale = false;
  }
  return known_values;
}

// Label and births as one snapshot has them: the cache of pg_enum may still have the label of
// before a RENAME whose births are there already.
void read_birth(Oid value, KnownValue* known) {
  Snapshot snapshot = RegisterSnapshot(GetCatalogSnapshot(SecLabelRelationId));
  known->length = -1;
  scan_catalog<FormData_pg_enum>(
      EnumRelationId, EnumOidIndexId, {{Anum_pg_enum_oid, value}},
      [&](const FormData_pg_enum& row, HeapTuple, TupleDesc) {
        const List* births = births_of(row.enumtypid, snapshot);
        strlcpy(known->born, born_as(births, NameStr(row.enumlabel)), sizeof known->born);
        known->length = static_cast<int>(strlen(known->born));
      },
      snapshot);
  UnregisterSnapshot(snapshot);
  if (known->length < 0)
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                    errmsg("invalid internal value for enum: %u", value)));
}

pg_noinline const KnownValue* learn_value(Oid value) {
  KnownValue known = {value, 0, ""};
  do {
    values_known_now();
    read_birth(value, &known);
  } while (is_stale);
  auto* entry = static_cast<KnownValue*>(hash_search(known_values, &value, HASH_ENTER, nullptr));
  *entry = known;
  return entry;
}

}  // namespace

void on_enum_change(Datum, SF_SYSCACHE_ID, uint32) { is_stale = true; }

uint64 hash_enum(Oid value, uint64 seed) {
  const void* found = hash_search(values_known_now(), &value, HASH_FIND, nullptr);
  const auto* known = static_cast<const KnownValue*>(found);
  if (unlikely(known == nullptr)) known = learn_value(value);
  return hash_bytes(known->born, static_cast<Size>(known->length), seed);
}

// ---- ALTER TYPE ---------------------------------------------------------------------------------

bool has_births(Oid type) { return births_of(type, nullptr) != NIL; }

void note_label(Oid type, const char* former, const char* label) {
  List* births = births_of(type, nullptr);
  const char* born = label;
  if (former != nullptr) {
    born = born_as(births, former);
    if (const int at = find(births, 0, former); at >= 0)
      births = list_delete_nth_cell(list_delete_nth_cell(births, at), at);
  } else if (find(births, 1, label) >= 0) {
    // ADD VALUE IF NOT EXISTS of one that exists.
    if (find(births, 0, label) >= 0) return;
    // Numbers are never given again: a value with such a birth never gets rid of it.
    int number = 1;
    for (int i = 1; i < list_length(births); i += 2)
      number += strlen(text_at(births, i)) >= NAMEDATALEN;
    born = psprintf("%-*s%d", NAMEDATALEN, label, number);
  } else {
    return;
  }
  if (strcmp(born, label) != 0)
    births = lappend(lappend(births, const_cast<char*>(label)), const_cast<char*>(born));
  ObjectAddress object;
  ObjectAddressSet(object, TypeRelationId, type);
  SetSecurityLabel(&object, kProvider, births == NIL ? nullptr : print(births));
}

void check_births(const ObjectAddress* object, const char* births) {
  const int count = births != nullptr ? list_length(births_in(births)) : 0;
  const bool fits = is_restoring() && count > 0 && count % 2 == 0 &&
                    object->classId == TypeRelationId &&
                    get_typtype(object->objectId) == TYPTYPE_ENUM;
  if (!fits)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("security labels of provider \"%s\" are written by ALTER TYPE ... RENAME VALUE",
                   kProvider),
            errhint("Name another provider, with SECURITY LABEL FOR ..."));
}

}  // namespace streamfilter::pg
