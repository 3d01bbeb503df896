// What toys of command links have in common: frames on their way between an entry and an owner.
#pragma once

#include <deque>
#include <string>

#include "cellar/status.h"
#include "replica/links/frame.h"

namespace toy_links {

inline cellar::FrameHead Head() {
  return {.kind = cellar::FrameKind::kError,
          .room = true,
          .term = 1,
          .from = 1,
          .sent_micros = 0,
          .echo_micros = 0};
}

// What an owner takes, and what an entry does.
inline cellar::FrameReader AtOwner() {
  using cellar::FrameKind;
  return {FrameKind::kCall, FrameKind::kChannel, FrameKind::kCancel, FrameKind::kCredit,
          FrameKind::kUnblock};
}
inline cellar::FrameReader AtEntry() {
  using cellar::FrameKind;
  return {FrameKind::kReply,   FrameKind::kMore,  FrameKind::kMoved,
          FrameKind::kChannel, FrameKind::kWrote, FrameKind::kUnblock};
}

// The oldest piece comes: `take` gets each whole frame. What it does not take is said; empty: all.
template <typename Take>
std::string Deliver(std::deque<std::string>* pieces, cellar::FrameReader* reader,
                    const Take& take) {
  if (pieces->empty()) return {};
  reader->Add(pieces->front());
  pieces->pop_front();
  cellar::Frame frame;
  for (;;) {
    const cellar::Result<bool> next = reader->Next(&frame);
    if (!next.ok()) return next.status().text();
    if (!*next) return {};
    if (const cellar::Status taken = take(frame); !taken.ok()) return taken.text();
  }
}

}  // namespace toy_links
