// What INFO everything and LATENCY HISTOGRAM say, as samples.
//
//   used_memory:18            cellar_used_memory 18           the field's own name; what only grows is
//                                                             a counter
//   rdb_last_bgsave_status:ok cellar_rdb_last_bgsave_status 1 err: 0
//   role:master               cellar_role{role="master"} 1
//   cmdstat_cget:calls=8,...  cellar_commands_total{command="cget"} 8, and three more
//                             its usec is the _sum of cellar_command_duration_seconds
//   errorstat_OOM:count=1     cellar_errors_total{error="OOM"} 1
//   table_0/web:rows=5,...    cellar_table_rows{keyspace="0",table="web"} 5
//   keyspace_0:tables=2,...   cellar_keyspace_tables{keyspace="0"} 2
//   slave0:ip=h,port=p,lag=1  cellar_replica_lag{replica="h:p"} 1; so for other numbered lines
//
// Texts, percentages and what is told for people (_human) are left out. The buckets of latencies
// are the server's own, powers of two of a microsecond.
#pragma once

#include <hiredis/hiredis.h>

#include <string>
#include <string_view>
#include <vector>

#include "cellar-web/exposition.h"

namespace cellar::web {

// A table that INFO names: "0/web".
struct ToldTable {
  std::string name;
  bool has_indexes{false};
};

// `tables`, if it is not null, gets those that INFO names.
void AddInfo(std::string_view info, Exposition* out, std::vector<ToldTable>* tables);
// `histogram` was asked before `info`, so that no command has buckets and no sum.
void AddLatencies(const redisReply& histogram, std::string_view info, Exposition* out);

// keyspace and table of "0/web".
std::pair<std::string_view, std::string_view> DivideName(std::string_view name);

}  // namespace cellar::web
