// Metrics: what GET /metrics serves, figures of the server and of its model in Prometheus' text
// format, to whoever has the token.
//
// A scrape asks INFO everything and LATENCY HISTOGRAM, some tenths of a millisecond. What needs a
// command for each index, feed, snapshot and family is gathered beside, by a thread of its own that
// rests kRestFactor times as long as the server took for each answer: so the figures of a thousand
// tables may be minutes old, and never cost more than a half per cent of a core.
// cellar_model_age_seconds says how old they are. A scrape that cannot reach the server says
// cellar_up 0, behind a comment that says why.
//
// Two connections of its own, as the user of --metrics-user. Any thread may call.
#pragma once

#include <chrono>
#include <condition_variable>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cellar-web/exposition.h"
#include "cellar-web/info_figures.h"
#include "client/connection.h"

namespace cellar::web {

class Metrics {
 public:
  // `token`: what is expected behind "Bearer ".
  Metrics(client::ConnectionOptions server, std::string token);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // `authorization` is that header's value. The time it takes does not depend on what is wrong.
  bool Allows(std::string_view authorization) const;
  std::string Scrape();

 private:
  static constexpr int kRestFactor{200};

  void GatherForEver();
  // One round over everything; nothing if it was broken off or the server is gone.
  std::optional<std::string> Gather();
  bool GatherIndexes(const ToldTable& table, Exposition* out);
  bool GatherFamilies(const ToldTable& table, Exposition* out);
  bool GatherFeeds(const std::string& keyspace, Exposition* out);
  bool GatherSnapshots(const std::string& keyspace, Exposition* out);
  // Asks, rests, and gives the reply; null if there is none, `gathering_` is then to be connected
  // anew. An error reply is a reply.
  client::Reply Ask(std::initializer_list<std::string_view> words);
  // False: the end has come.
  bool Rest(std::chrono::nanoseconds time);

  const client::ConnectionOptions server_;
  const std::string expected_;
  std::mutex scrape_mutex_;
  std::optional<client::Connection> scraping_;
  std::optional<client::Connection> gathering_;  // the thread's
  std::mutex mutex_;                             // what follows
  std::condition_variable wake_;
  bool ends_{false};
  std::string model_;
  std::optional<std::chrono::steady_clock::time_point> model_time_;
  std::thread thread_;
};

}  // namespace cellar::web
