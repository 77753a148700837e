#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/memutils.h"
}

#include "pg/server/no_raise.hpp"
#include "pg/trigger/kept_judges.hpp"

namespace streamfilter::pg {
namespace {

constexpr Oid kPlaces = 16;

struct KeptJudge {
  RowJudge judge;
  bool lent;
};
KeptJudge kept[kPlaces];

void give_back(void* place) {
  const NoRaise marked;
  static_cast<KeptJudge*>(place)->lent = false;
}

// The borrowing statement may call code that fires the same trigger in another statement.
KeptJudge* lend(const Trigger* trigger, MemoryContext of_statement) {
  KeptJudge* place = &kept[trigger->tgoid % kPlaces];
  if (place->lent) return nullptr;
  auto* back = static_cast<MemoryContextCallback*>(
      MemoryContextAlloc(of_statement, sizeof(MemoryContextCallback)));
  *back = {give_back, place, nullptr};
  MemoryContextRegisterResetCallback(of_statement, back);
  place->lent = true;
  return place;
}

}  // namespace

RowJudge* borrow_judge(const Trigger* trigger, TriggerKind kind, uint64 statement, bool routed,
                       MemoryContext of_statement) {
  RowJudge* judge;
  if (KeptJudge* place = lend(trigger, of_statement)) {
    judge = &place->judge;
    if (judge->context == nullptr) init_row_judge(judge, kind, statement, CacheMemoryContext);
  } else {
    judge = static_cast<RowJudge*>(MemoryContextAllocZero(of_statement, sizeof(RowJudge)));
    init_row_judge(judge, kind, statement, of_statement);
  }
  set_kind(judge, kind);
  judge->statement = statement;
  judge->routed = routed;
  judge->checked_changes = 0;  // that was another statement's conflict target
  FilterHandle*& filter = judge->keys.filter;
  if (!judge->lasts || routed || (filter != nullptr && !is_loaded(filter))) filter = nullptr;
  return judge;
}

}  // namespace streamfilter::pg
