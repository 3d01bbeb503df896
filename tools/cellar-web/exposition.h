// Exposition: figures as Prometheus reads them, its text format 0.0.4.
//
//   # HELP cellar_table_rows Rows of a table.
//   # TYPE cellar_table_rows gauge
//   cellar_table_rows{keyspace="0",table="web"} 5
//
// All samples of a name stand together behind its two lines, whatever the order in which they were
// added. Names are the caller's to have right; the values of labels may be any bytes: what is not
// UTF-8 is shown as \xHH.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cellar::web {

enum class MetricKind : uint8_t { kGauge, kCounter, kHistogram };

using Label = std::pair<std::string_view, std::string_view>;

class Exposition {
 public:
  // `value` is a number as text: what the server said is not rounded on its way. `suffix` is what a
  // histogram's samples have behind their name: _bucket, _sum, _count.
  void Add(std::string_view name, MetricKind kind, std::string_view help,
           std::initializer_list<Label> labels, std::string_view value,
           std::string_view suffix = {});

  std::string Text() const;

 private:
  struct Family {
    std::string head;
    std::string samples;
  };
  std::vector<Family> families_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace cellar::web
