// BackupTask: BACKUP over all sets of a cluster. The leader of each set makes the part of its own
// (store/history/backup.h); this node asks them, one round after the other:
//
//   START, ABORT, CLEANUP, STATUS, LIST   all sets beside each other
//   SEAL    if all are ready a cut (CLUSTER CUT BACKUP), which all keep; then all seal their parts
//           with it; then they write down what the whole is made of, cluster.json, one after the
//           other, since they may share the folder. If all parts are sealed at one cut already, only
//           that: whoever was asked before may have died in between
//
// A set that cannot be asked, or refuses, makes the command fail, and is named. What others have
// begun by START is aborted; else what they have done stays, and ABORT or CLEANUP takes it back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "commands/session/command_context.h"
#include "commands/session/task.h"

namespace cellar {

class BackupTask final : public Task {
 public:
  enum class Verb : uint8_t { kStart, kSeal, kStatus, kList, kAbort, kCleanup };

  BackupTask(const CommandContext& ctx, Verb verb);
  ~BackupTask() override;
  TaskProgress Step(TaskContext& context) override;

 private:
  enum class Round : uint8_t { kBegin, kReady, kCut, kParts, kDescribe, kTakeBack };
  void Ask(uint64_t set, const std::vector<std::string>& words);
  void AskAll(const std::vector<std::string>& words);
  // Takes what has come. True: all have answered.
  bool TakeAnswers();
  // Of STATUS, once it has taken too long.
  bool GivesUp();
  // What is wrong; empty: nothing is.
  std::string FirstError() const;
  TaskProgress Next(TaskContext& context);
  TaskProgress BeginSeal(TaskContext& context);
  TaskProgress TakeParts(TaskContext& context);
  std::string Description() const;
  std::string WhyNotReady() const;
  // The cut that all parts are sealed at; 0: there is none.
  uint64_t SealedCut() const;
  // False: all have been told.
  bool AskNextToDescribe();
  void ReplyStatus(TaskContext& context);
  void ReplyList(TaskContext& context);

  Host& host_;
  Session& session_;
  const Verb verb_;
  const int64_t deadline_micros_;  // monotonic
  Round round_{Round::kBegin};
  std::map<uint64_t, uint64_t> tickets_{};     // by set
  std::map<uint64_t, std::string> replies_{};  // by set
  std::map<uint64_t, std::string> errors_{};   // by set
  uint64_t cut_{0};
  std::string description_{};
  std::vector<uint64_t> to_describe_{};  // sets
  std::string failure_{};                // told once what was begun is taken back
};

}  // namespace cellar
