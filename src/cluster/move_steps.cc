// See move_steps.h.
#include "cluster/move_steps.h"

#include <utility>

#include "base/coding.h"
#include "store/format/log_format.h"

namespace cellar {
namespace {

// Beyond it no timestamp of a server's own can be: a set that took one over would have none left.
constexpr uint64_t kStampMax{static_cast<uint64_t>(kCommitTimeMax)};

bool GetByte(std::string_view* from, uint8_t most, uint8_t* byte) {
  if (from->empty() || static_cast<uint8_t>(from->front()) > most) return false;
  *byte = static_cast<uint8_t>(from->front());
  from->remove_prefix(1);
  return true;
}

bool GetText(std::string_view* from, std::string* text) {
  std::string_view bytes;
  if (!GetLengthPrefixed(from, &bytes)) return false;
  *text = bytes;
  return true;
}

void PutPart(const MovePart& part, std::string* to) {
  std::string bytes;
  EncodeMovePart(part, &bytes);
  PutLengthPrefixed(to, bytes);
}

bool GetPart(std::string_view* from, MovePart* part) {
  std::string_view bytes;
  return GetLengthPrefixed(from, &bytes) && DecodeMovePart(bytes, part);
}

}  // namespace

void EncodeMoveStep(const MoveStep& step, std::string* to) {
  to->push_back(static_cast<char>(step.kind));
  PutFixed64(to, step.cluster_id);
  PutVarint64(to, step.job);
  PutVarint64(to, step.floor);
  switch (step.kind) {
    case MoveStep::Kind::kJob:
      EncodeMoveOut(step.out, to);
      PutVarint64(to, step.rate);
      break;
    case MoveStep::Kind::kBegin:
      PutVarint64(to, step.catalog);
      EncodeMoveIn(step.in, to);
      if (!step.failures.empty()) PutLengthPrefixed(to, step.failures);
      break;
    case MoveStep::Kind::kPart:
      PutVarint64(to, step.from);
      PutPart(step.part, to);
      PutLengthPrefixed(to, step.ops);
      break;
    case MoveStep::Kind::kOwn:
      PutVarint64(to, step.from);
      PutPart(step.part, to);
      PutVarint64(to, static_cast<uint64_t>(step.stamp));
      PutVarint64(to, step.record_next);
      break;
    case MoveStep::Kind::kHolds:
      EncodeMoveOut(step.out, to);
      break;
    case MoveStep::Kind::kSplit:
    case MoveStep::Kind::kMerge:
      EncodeMoveOut(step.out, to);
      PutLengthPrefixed(to, step.ops);
      break;
    case MoveStep::Kind::kGroups:
      PutVarint64(to, step.catalog);
      PutVarint64(to, step.from);
      to->push_back(step.behind ? 1 : 0);
      PutLengthPrefixed(to, step.ops);
      break;
    case MoveStep::Kind::kArrived:
      PutVarint64(to, step.catalog);
      break;
    case MoveStep::Kind::kDrop:
    case MoveStep::Kind::kCancel:
    case MoveStep::Kind::kSizes:
    case MoveStep::Kind::kReclaim:
    case MoveStep::Kind::kOwned:
    case MoveStep::Kind::kLead:
      break;
  }
}

bool DecodeMoveStep(std::string_view from, MoveStep* step) {
  *step = {};
  uint8_t kind = 0;
  if (!GetByte(&from, static_cast<uint8_t>(MoveStep::Kind::kLead), &kind) ||
      !GetFixed64(&from, &step->cluster_id) || !GetVarint64(&from, &step->job) ||
      !GetVarint64(&from, &step->floor) || step->job == 0)
    return false;
  step->kind = static_cast<MoveStep::Kind>(kind);
  bool read = true;
  uint64_t stamp = 0;
  uint8_t behind = 0;
  switch (step->kind) {
    case MoveStep::Kind::kJob:
      read = DecodeMoveOut(&from, &step->out) && GetVarint64(&from, &step->rate);
      break;
    case MoveStep::Kind::kBegin:
      read = GetVarint64(&from, &step->catalog) && DecodeMoveIn(&from, &step->in) &&
             (from.empty() || GetText(&from, &step->failures));
      break;
    case MoveStep::Kind::kPart:
      read = GetVarint64(&from, &step->from) && GetPart(&from, &step->part) &&
             GetText(&from, &step->ops);
      break;
    case MoveStep::Kind::kOwn:
      read = GetVarint64(&from, &step->from) && GetPart(&from, &step->part) &&
             GetVarint64(&from, &stamp) && stamp <= kStampMax &&
             GetVarint64(&from, &step->record_next);
      step->stamp = static_cast<int64_t>(stamp);
      break;
    case MoveStep::Kind::kHolds:
      read = DecodeMoveOut(&from, &step->out);
      break;
    case MoveStep::Kind::kSplit:
    case MoveStep::Kind::kMerge:
      read = DecodeMoveOut(&from, &step->out) && GetText(&from, &step->ops);
      break;
    case MoveStep::Kind::kGroups:
      read = GetVarint64(&from, &step->catalog) && GetVarint64(&from, &step->from) &&
             GetByte(&from, 1, &behind) && GetText(&from, &step->ops);
      step->behind = behind != 0;
      break;
    case MoveStep::Kind::kArrived:
      read = GetVarint64(&from, &step->catalog);
      break;
    case MoveStep::Kind::kDrop:
    case MoveStep::Kind::kCancel:
    case MoveStep::Kind::kSizes:
    case MoveStep::Kind::kReclaim:
    case MoveStep::Kind::kOwned:
    case MoveStep::Kind::kLead:
      break;
  }
  return read && from.empty();
}

void EncodeMoveAnswer(const MoveAnswer& answer, std::string* to) {
  to->push_back(static_cast<char>(answer.code));
  to->push_back(static_cast<char>(answer.end));
  to->push_back(answer.given ? '\1' : '\0');
  PutLengthPrefixed(to, answer.state);
  PutVarint64(to, answer.bytes);
  PutVarint64(to, answer.behind);
  std::string in;
  // Of what is not there nothing is said.
  if (answer.in.tablet.epoch > 0 && answer.code == MoveAnswer::Code::kOk)
    EncodeMoveIn(answer.in, &in);
  PutLengthPrefixed(to, in);
  PutLengthPrefixed(to, answer.text);
}

bool DecodeMoveAnswer(std::string_view from, MoveAnswer* answer) {
  *answer = {};
  uint8_t code = 0;
  uint8_t end = 0;
  uint8_t given = 0;
  std::string_view in;
  if (!GetByte(&from, static_cast<uint8_t>(MoveAnswer::Code::kStale), &code) ||
      !GetByte(&from, 1, &end) || !GetByte(&from, 1, &given) || !GetText(&from, &answer->state) ||
      !GetVarint64(&from, &answer->bytes) || !GetVarint64(&from, &answer->behind) ||
      !GetLengthPrefixed(&from, &in))
    return false;
  answer->code = static_cast<MoveAnswer::Code>(code);
  answer->end = static_cast<MoveEnd>(end);
  answer->given = given != 0;
  if (!in.empty() && (!DecodeMoveIn(&in, &answer->in) || !in.empty())) return false;
  return GetText(&from, &answer->text) && from.empty();
}

}  // namespace cellar
