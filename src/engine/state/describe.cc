// A mutation as text, for `cellar --dump`. The log alone does not say how a table's keys are
// ordered, so keys are shown as they are encoded, in redis-cli quoting.
#include "base/text/ascii.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/feeds/feed.h"
#include "engine/keys/cell.h"
#include "engine/schema/schema.h"
#include "engine/state/cut_mark.h"
#include "engine/state/engine.h"

namespace cellar {
namespace {

std::string DescribeValue(std::string_view bytes) {
  CellValue cell;
  PlainValue plain;
  if (!DecodeCellValue(bytes, &plain, &cell) || !StoredValueIsValid(cell.type, cell.stored)) {
    return "(malformed) " + QuoteWord(bytes);
  }
  std::string text = QuoteWord(ValueText(cell.type, cell.stored));
  text += " AS ";
  text += ValueTypeName(cell.type);
  if (cell.expiry_micros != kNoExpiry) text += " EXPIRES " + FormatInt64(cell.expiry_micros);
  return text;
}

std::string DescribeSchema(std::string_view bytes) {
  TableSchema schema;
  if (!DecodeTableSchema(&bytes, &schema).ok()) return "(malformed)";
  std::string text = "KEY " + QuoteWord(schema.key.spec());
  if (schema.placement.colocate != 0)
    text += " COLOCATE " + FormatUint64(schema.placement.colocate);
  if (schema.placement.whole) text += " WHOLE";
  for (const FamilySchema& family : schema.families) {
    text += " FAMILY " + family.name + FamilyOptionsText(schema, family) + " ID " +
            FormatUint64(family.id);
  }
  return text;
}

std::string Range(const DecodedOp& op) {
  return "[" + QuoteWord(op.first) + ", " + (op.second.empty() ? "end" : QuoteWord(op.second)) +
         ")";
}

std::string TabletsText(const Tablets& tablets) {
  std::string text;
  for (const Tablet& tablet : tablets.list()) {
    text += " [" + QuoteWord(tablet.begin) + ", " +
            (tablet.end.empty() ? "end" : QuoteWord(tablet.end)) + ") EPOCH " +
            FormatUint64(tablet.epoch);
  }
  return text;
}

std::string DescribeTablets(std::string_view bytes) {
  ClusterState state;
  TabletsByTable tables;
  if (!DecodeClusterState(bytes, &state, &tables)) return "TABLETS (malformed)";
  if (!state.active()) return "TABLETS OF NO CLUSTER";
  std::string text =
      "TABLETS OF SET " + FormatUint64(state.set) + " CATALOG " + FormatUint64(state.catalog);
  for (const auto& [id, tablets] : tables)
    text += " TABLE " + FormatUint64(id) + TabletsText(*tablets);
  return text;
}

std::string RangeText(uint64_t table_id, const Tablet& tablet) {
  return " TABLE " + FormatUint64(table_id) + " [" + QuoteWord(tablet.begin) + ", " +
         (tablet.end.empty() ? "end" : QuoteWord(tablet.end)) + ") EPOCH " +
         FormatUint64(tablet.epoch);
}

// Of tablets on their way.
std::string DescribeMove(const DecodedOp& op) {
  const std::string job = FormatUint64(op.id);
  std::string_view body = op.first;
  MoveOut out;
  MoveIn in;
  MovePart part;
  const auto part_text = [&] {
    if (!DecodeMovePart(body, &part)) return std::string(" (malformed)");
    std::string text =
        " ATTEMPT " + FormatUint64(part.attempt) + " PART " + FormatUint64(part.part);
    if (part.tail.lsn != Lsn{})
      text += " UP TO " + FormatUint64(part.tail.lsn.epoch) + "-" + FormatUint64(part.tail.lsn.seq);
    return text;
  };
  switch (op.op) {
    case MutationOp::kMoveBegin:
      return "MOVE BEGIN " + job +
             (DecodeMoveOut(&body, &out)
                  ? RangeText(out.table_id, out.tablet) + " TO SET " + FormatUint64(out.to)
                  : " (malformed)");
    case MutationOp::kMoveCancel:
      return "MOVE CANCEL " + job;
    case MutationOp::kMoveGive:
      return "MOVE GIVE " + job;
    case MutationOp::kMoveDone:
      return "MOVE DONE " + job;
    case MutationOp::kStageBegin:
      return "STAGE BEGIN " + job +
             (DecodeMoveIn(&body, &in)
                  ? RangeText(in.table_id, in.tablet) + " FROM SET " + FormatUint64(in.from) +
                        " ATTEMPT " + FormatUint64(in.attempt)
                  : " (malformed)");
    case MutationOp::kStageRun:
      return "STAGE RUN " + job + part_text();
    case MutationOp::kStageTail:
      return "STAGE TAIL " + job + part_text();
    case MutationOp::kMoveOwn:
      return "MOVE OWN " + job + part_text();
    case MutationOp::kFloor:
      return "FLOOR " + job;
    default:
      return "PURGE TABLE " + job;
  }
}

std::string DescribeFeedOp(const DecodedOp& op) {
  const std::string id = FormatUint64(op.id);
  switch (op.op) {
    case MutationOp::kCreateFeed:
      return "FEED CREATE " + QuoteWord(op.first) + "/" + QuoteWord(op.second) + " ID " + id;
    case MutationOp::kDropFeed:
      return "FEED DROP " + id;
    case MutationOp::kFeedGroup:
      return "FEED GROUP " + std::string(op.id == FeedOfGroups(op.id) ? "" : "OF ALL SETS ") +
             FormatUint64(FeedOfGroups(op.id)) + " " + QuoteWord(op.first) + " " +
             QuoteWord(op.second);
    case MutationOp::kFeedHome: {
      std::string_view bytes = op.first;
      FeedHome home;
      if (!DecodeFeedHome(&bytes, &home)) return "FEED HOME " + id + " (malformed)";
      return "FEED HOME " + id + " SET " + FormatUint64(home.set) +
             (home.from ? " FROM SET " + FormatUint64(*home.from) : std::string()) +
             (home.from && !home.awaits ? " ARRIVED" : "");
    }
    default: {
      Feed feed;
      return DecodeFeedTrim(op.first, &feed)
                 ? "FEED TRIM " + id + " UP TO " + FormatInt64(feed.through_micros)
                 : "(malformed)";
    }
  }
}

// Of feeds, snapshots and tablets.
std::string DescribeLaterOp(const DecodedOp& op) {
  const std::string id = FormatUint64(op.id);
  switch (op.op) {
    case MutationOp::kCreateFeed:
    case MutationOp::kDropFeed:
    case MutationOp::kFeedGroup:
    case MutationOp::kFeedHome:
    case MutationOp::kTrimFeed:
      return DescribeFeedOp(op);
    case MutationOp::kCreateSnapshot:
      return "SNAPSHOT CREATE " + QuoteWord(op.first) + "/" + QuoteWord(op.second) + " ID " + id;
    case MutationOp::kDropSnapshot:
      return "SNAPSHOT DROP " + id;
    case MutationOp::kNameSnapshot:
      return "SNAPSHOT NAME " + id + " " + QuoteWord(op.first);
    case MutationOp::kAdoptSnapshot:
      return "SNAPSHOT ADOPT " + QuoteWord(op.first) + "/" + QuoteWord(op.second) + " ID " + id;
    case MutationOp::kCopyTable:
      return "COPY " + QuoteWord(op.first) + "/" + QuoteWord(op.second) + " ID " + id;
    case MutationOp::kTablets:
      return DescribeTablets(op.first);
    case MutationOp::kTabletSplit:
      return "TABLET SPLIT " + id + " AT " + QuoteWord(op.first);
    case MutationOp::kTabletMerge:
      return "TABLET MERGE " + id + " " + QuoteWord(op.first);
    case MutationOp::kTabletAssign: {
      std::string_view bytes = op.first;
      const Tablets::Pointer tablets = Tablets::Decode(&bytes);
      return "TABLETS OF " + id + (tablets == nullptr ? " (malformed)" : TabletsText(*tablets));
    }
    case MutationOp::kMoveBegin:
    case MutationOp::kMoveCancel:
    case MutationOp::kMoveGive:
    case MutationOp::kMoveDone:
    case MutationOp::kStageBegin:
    case MutationOp::kStageRun:
    case MutationOp::kStageTail:
    case MutationOp::kMoveOwn:
    case MutationOp::kFloor:
    case MutationOp::kPurge:
      return DescribeMove(op);
    case MutationOp::kOpenAs: {
      uint64_t set_id = 0;
      if (!DecodeOpenAs(op.first, &set_id)) return "OPEN AS (malformed)";
      // It lies there the other way round.
      const std::string as = " " + HexText(std::string(op.first.rbegin(), op.first.rend()));
      return op.id == 0 ? "OPEN AS" + as : "RECOVERED TO CUT " + id + " WAS" + as;
    }
    case MutationOp::kCatalog:
      return "CATALOG " + FormatUint64(op.number);
    case MutationOp::kCut: {
      std::string_view bytes = op.first;
      CutMark mark;
      if (!DecodeCutMark(&bytes, &mark)) return "CUT " + id + " (malformed)";
      return "CUT " + id + " FOR " + std::string(CutPurposeName(mark.purpose)) + " AT " +
             FormatInt64(mark.time_micros);
    }
    default:
      return "(unknown)";
  }
}

// One line for each op. What cannot be read is called malformed instead of ending the dump.
std::string DescribeOp(const DecodedOp& op) {
  const std::string id = FormatUint64(op.id);
  const std::string number = FormatUint64(op.number);
  switch (op.op) {
    case MutationOp::kStep:
      return "STEP";
    case MutationOp::kTable:
      return "TABLE " + id;
    case MutationOp::kRow:
      return "ROW " + QuoteWord(op.first);
    case MutationOp::kPut:
      return "PUT " + id + ":" + QuoteWord(op.first) + " " + DescribeValue(op.second) + " TS " +
             number;
    case MutationOp::kReplace:
      return "PUT " + id + ":" + QuoteWord(op.first) + " " + DescribeValue(op.second) + " TS " +
             number + " FOR " + FormatUint64(op.replaced);
    case MutationOp::kAddInput:
      return "ADD " + id + ":" + QuoteWord(op.first) + " " + QuoteWord(op.second) + " TS " + number;
    case MutationOp::kMergeState:
      return "MERGE " + id + ":" + QuoteWord(op.first) + " " + QuoteWord(op.second) + " TS " +
             number;
    case MutationOp::kDeleteCell:
      return "DEL " + id + ":" + QuoteWord(op.first) + " TS " + number;
    case MutationOp::kDeleteRange:
      return "DEL " + id + " COLRANGE " + Range(op);
    case MutationOp::kDeleteRow:
      return "DELROW";
    case MutationOp::kDeleteRows:
      return "DELROWS " + Range(op);
    case MutationOp::kReclaimColumn:
      return "RECLAIM " + id + ":" + QuoteWord(op.first) + " NOW " + number;
    case MutationOp::kPreImages:
      return "OLD CELLS " + number;
    case MutationOp::kRewrites:
      return op.number == 0 ? "REWRITES END" : "REWRITES BEGIN";
    case MutationOp::kRecordNumber:
      return "RECNO NEXT " + number;
    case MutationOp::kCreateKeyspace:
      return "KEYSPACE CREATE " + QuoteWord(op.first);
    case MutationOp::kDropKeyspace:
      return "KEYSPACE DROP " + QuoteWord(op.first);
    case MutationOp::kCreateTable:
      return "TABLE CREATE " + QuoteWord(op.first) + "/" + QuoteWord(op.second) + " ID " + id +
             " " + DescribeSchema(op.third);
    case MutationOp::kDropTable:
      return "TABLE DROP " + id;
    case MutationOp::kRenameTable:
      return "TABLE RENAME " + id + " " + QuoteWord(op.first) + "/" + QuoteWord(op.second);
    case MutationOp::kSetSchema:
      return "SCHEMA " + id + " " + DescribeSchema(op.first);
    case MutationOp::kTruncateTable:
      return "TABLE TRUNCATE " + id;
    default:
      return DescribeLaterOp(op);
  }
}

}  // namespace

std::string Engine::Describe(std::string_view mutation) {
  MutationReader reader(mutation);
  int64_t stamp = 0;
  if (!reader.ReadStamp(&stamp)) return "(malformed)";
  std::string text = "STAMP " + FormatInt64(stamp);
  DecodedOp op;
  uint64_t steps = 0;
  while (reader.Next(&op)) {
    if (op.op != MutationOp::kStep) {
      text += "\n" + DescribeOp(op);
    } else if (++steps > 1) {
      text += "\nSTEP";
    }
  }
  if (!reader.status().ok()) text += "\n(malformed)";
  return text;
}

}  // namespace cellar
