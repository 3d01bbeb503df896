// The words of the error codes, and the slow half of Status.
#include "cellar/status.h"

#include "base/assert.h"

namespace cellar {

namespace {

std::string_view ClusterWord(ErrorCode code) {
  if (code == ErrorCode::kTryAgain) return "TRYAGAIN";
  return code == ErrorCode::kClusterDown ? "CLUSTERDOWN" : "CROSSSET";
}

}  // namespace

// Clients branch on these words: one that has been released stays as it is. Without a default in
// the switch the compiler names a code that has no word here.
std::string_view ErrorCodeWord(ErrorCode code) {
  switch (code) {
    case ErrorCode::kErr:
      return "ERR";
    case ErrorCode::kWrongType:
      return "WRONGTYPE";
    case ErrorCode::kNoAuth:
      return "NOAUTH";
    case ErrorCode::kWrongPass:
      return "WRONGPASS";
    case ErrorCode::kNoPerm:
      return "NOPERM";
    case ErrorCode::kOom:
      return "OOM";
    case ErrorCode::kMisconf:
      return "MISCONF";
    case ErrorCode::kReadOnly:
      return "READONLY";
    case ErrorCode::kLoading:
      return "LOADING";
    case ErrorCode::kExecAbort:
      return "EXECABORT";
    case ErrorCode::kBusyKey:
      return "BUSYKEY";
    case ErrorCode::kNoProto:
      return "NOPROTO";
    case ErrorCode::kNoTable:
      return "NOTABLE";
    case ErrorCode::kNoFamily:
      return "NOFAMILY";
    case ErrorCode::kNoIndex:
      return "NOINDEX";
    case ErrorCode::kNoKeyspace:
      return "NOKEYSPACE";
    case ErrorCode::kBadKey:
      return "BADKEY";
    case ErrorCode::kBadValue:
      return "BADVALUE";
    case ErrorCode::kBadFilter:
      return "BADFILTER";
    case ErrorCode::kNotUnique:
      return "NOTUNIQUE";
    case ErrorCode::kStaleCursor:
      return "STALECURSOR";
    case ErrorCode::kTryAgain:
    case ErrorCode::kClusterDown:
    case ErrorCode::kCrossSet:
      return ClusterWord(code);
    case ErrorCode::kTooLarge:
      return "TOOLARGE";
    case ErrorCode::kNoFeed:
      return "NOFEED";
    case ErrorCode::kNoSnapshot:
      return "NOSNAPSHOT";
    case ErrorCode::kTrimmed:
      return "TRIMMED";
    case ErrorCode::kNoGroup:
      return "NOGROUP";
    case ErrorCode::kBusyGroup:
      return "BUSYGROUP";
    case ErrorCode::kIo:
      return "IOERR";
    case ErrorCode::kNoSpace:
      return "NOSPACE";
    case ErrorCode::kCorruption:
      return "CORRUPTION";
  }
  return "ERR";
}

Status Status::Error(ErrorCode code, std::string text) {
  CELLAR_ASSERT(!text.empty());
  Status status;
  status.rep_ = std::make_unique<Rep>(Rep{code, std::move(text)});
  return status;
}

Status::Status(const Status& other)
    : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return std::string(ErrorCodeWord(rep_->code)) + " " + rep_->text;
}

}  // namespace cellar
