// What a Batch holds: its changes in order, their words one behind the other in one string, so that
// a batch that is used again allocates nothing.
//
//   bytes_  | table row column value type | column value | row column value | ...
//             change 0                      change 1: same row  change 2: same table
//
// Neighbours in one row share its bytes, so that whether a change goes on in the row of the one
// before is a comparison of two numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/store.h"
#include "engine/request/row_write.h"

namespace cellar::embedded {

struct Batch::Changes {
  // A piece of bytes_.
  struct Word {
    uint64_t begin{0};
    uint64_t size{0};
  };
  struct Change {
    CellOp::Kind kind{CellOp::Kind::kPut};
    bool has_options{false};  // then options_[option] are its own
    uint32_t option{0};
    Word table;
    Word row;
    Word column;
    Word value;

    bool IsPlainPut() const { return kind == CellOp::Kind::kPut && !has_options; }
    bool SameRow(const Change& other) const {
      return table.begin == other.table.begin && row.begin == other.row.begin;
    }
  };
  struct Option {
    PutOptions options;  // their type is `type`
    Word type;
  };

  std::string_view Text(const Word& word) const {
    return std::string_view(bytes).substr(word.begin, word.size);
  }
  void Add(CellOp::Kind kind, std::string_view table, std::string_view row, std::string_view column,
           std::string_view value);
  void AddOptions(const PutOptions& options);  // to the last one
  // Those of a change that has some. Borrows.
  PutOptions OptionsOf(const Change& change) const;

  std::string bytes;
  std::vector<Change> list;
  std::vector<Option> options;

 private:
  Word AddWord(std::string_view text);
};

}  // namespace cellar::embedded
