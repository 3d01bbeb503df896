// AccessSampler: looks at every so-many-th command for HEAT and HOTKEYS, and where rows are those
// of several sets for what each tablet takes (heat/load_samples.h).
//
// All that other commands pay for it is a countdown. Of one that is looked at, the row that it
// names (KeySpec::row) is counted for all those since the one before; commands that name no row
// and walk over many count their rows themselves for HEAT, and say where they are (scan_heat.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/inline.h"
#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"
#include "heat/hot_keys.h"
#include "heat/load_samples.h"

namespace cellar {

class Host;
class Table;
struct Services;
struct Session;

// What HOTKEYS compares: as of now.
HotKeys::Totals HotKeyTotals(const Services& services);

class AccessSampler {
 public:
  explicit AccessSampler(Host& host) : host_(host) {}

  // Whether this command is to be looked at.
  CELLAR_INLINE bool Takes() { return --left_ == 0; }
  struct Access {
    const CommandEntry& command;
    Arguments args;
    size_t reply_bytes;
    uint64_t nanos;
    bool in_slices;  // of which EndSlice was told
    bool failed;
  };
  // REQUIRES: Takes() has said true of it.
  void Look(const Session& session, const Access& access);
  // Of a command that goes on in a task, what the handler or a slice has taken.
  CELLAR_INLINE void EndSlice(uint64_t nanos) {
    if (load_left_ != UINT64_MAX) [[unlikely]]
      CountSlice(nanos);
  }
  // What is asked for has changed: heat-sample, or HOTKEYS; or whether rows are those of several
  // sets.
  void Restart();
  // Ends HOTKEYS when its time is over.
  void Tick();

 private:
  void Draw();
  void DrawLoad();
  // The row that the command names, encoded, in its table; false: none that there could be.
  bool FindRow(const Session& session, const Access& access, const Table** table,
               std::string* key) const;
  void CountHeat(const Session& session, const Access& access);
  void CountLoad(const Session& session, const Access& access);
  void CountSlice(uint64_t nanos);
  // Where what is at hand when so many commands are done has come to; false: it goes over no rows.
  bool FindPlace(uint64_t commands, LoadSamples::Row* row) const;
  void CountHotKeys(const Session& session, const Access& access);

  Host& host_;
  uint64_t left_{1};
  uint64_t distance_{1};  // what left_ began with
  uint64_t heat_left_{1};
  uint64_t hot_left_{UINT64_MAX};
  uint64_t load_left_{UINT64_MAX};
  uint64_t slice_nanos_{0};       // of slices since one was kept
  uint64_t slice_nanos_next_{0};  // with so many the next one is
};

}  // namespace cellar
