// BackupCuts: this node's part of a backup of its cluster: at a cut the leader of a set takes hold
// of the state, and one that leads no more gives its part up.
#pragma once

#include <cstdint>

#include "cellar/lsn.h"
#include "cluster/cut_desk.h"
#include "commands/session/host.h"

namespace cellar {

class BackupCuts final : public CutListener {
 public:
  // `host` outlives it.
  explicit BackupCuts(Host& host) : host_(host) {}

  void OnCut(const CutMark& mark, uint64_t number, Lsn record) override;
  void OnTick();

 private:
  Host& host_;
};

}  // namespace cellar
