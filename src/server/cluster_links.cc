// See cluster_links.h.
#include "server/cluster_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/os/log.h"
#include "base/text/quote.h"
#include "commands/cluster/cluster_part.h"
#include "commands/config/config.h"
#include "commands/reports/cluster_report.h"
#include "commands/session/services.h"
#include "replica/greeting.h"
#include "replica/set_node.h"
#include "store/catalog_changes.h"
#include "store/store.h"

namespace cellar {
namespace {

std::string NumberBody(uint64_t number) {
  std::string body;
  PutVarint64(&body, number);
  return body;
}

bool ReadNumber(std::string_view body, uint64_t* number) {
  return GetVarint64(&body, number) && body.empty();
}

}  // namespace

// This node's link to the director.
class ClusterLinks::Up final : public PeerHandler {
 public:
  Up(ClusterLinks& links, NodeAddress address) : links_(links), address_(std::move(address)) {}
  ~Up() override { Drop(); }

  void Begin() {
    dialling_ = true;
    begun_micros_ = links_.now();
    links_.dialler_.Dial(address_.host, address_.port, this);
  }
  bool dead() const { return dead_; }
  bool stands() const { return greeted_ && !dead_; }
  void Say(FrameKind kind, std::string_view body) {
    if (stands()) link_->Write(EncodeFrame(links_.Head(kind), body));
  }
  // What has changed since the last one, or when it is time.
  void ReportIfDue() {
    if (!stands()) return;
    const Lsn schema = links_.host_.store().schema_lsn();
    // What it owns is told once that is committed, by a report that counts.
    const bool with_tablets = links_.LeadsAsTold() && links_.in_cluster() && schema != told_lsn_ &&
                              links_.set()->set().commit().seq >= schema.seq;
    NodeReport report = links_.MakeReport(with_tablets);
    // Sizes change all the time: they alone are no news.
    const uint64_t bytes = std::exchange(report.set.bytes, 0);
    const uint64_t load = std::exchange(report.set.load, 0);
    const bool is_news = with_tablets || report.leads != told_.leads || report.set != told_.set ||
                         report.cluster_id != told_.cluster_id || report.users != told_.users ||
                         report.zone != told_.zone || report.machine != told_.machine;
    if (!is_news && links_.now() < report_micros_) return;
    report_micros_ = links_.now() + kReportMicros;
    if (with_tablets) told_lsn_ = schema;
    told_ = report;
    report.set.bytes = bytes;
    report.set.load = load;
    std::string body;
    EncodeReport(report, &body);
    Say(FrameKind::kReport, body);
  }
  // What the set owns has changed, for good: others wait to hear of it.
  void ReportTablets() {
    const Lsn schema = links_.host_.store().schema_lsn();
    if (!stands() || schema == told_lsn_ || !links_.leads() || !links_.in_cluster()) return;
    if (links_.set()->set().commit().seq >= schema.seq) ReportIfDue();
  }
  // Somebody may wait for this node to go by the users that it has taken over.
  void ReportUsers() {
    const uint64_t index = links_.host_.services().acl.taken_over().index;
    if (stands() && std::exchange(users_seen_, index) != index) ReportIfDue();
  }
  // One that is silent is given up: from the beginning, or that has said that it is there again and
  // again, as directors of an earlier version do not.
  void OnTick(bool stood_still) {
    if (dead_) return;
    if (!greeted_ && links_.now() - begun_micros_ > 2'000'000) return Fail("no answer");
    if (stood_still) heard_micros_ = links_.now();
    if (is_told_ && links_.now() - heard_micros_ > kReportMicros) Fail("it is silent");
  }
  void Fail(std::string_view why) {
    if (dead_) return;
    links_.failure_ = fmt::format("{}:{}: {}", address_.host, address_.port, why);
    Log(LogSeverity::kVerbose, "Link to the cluster by " + links_.failure_);
    Drop();
    dead_ = true;
  }

  // --- PeerHandler
  void OnConnected(PeerLink* link) override {
    dialling_ = false;
    link_ = link;
    link_->SetPatience(links_.host_.services().config.replica_election_timeout * 1300);
    said_ = links_.Known();
    link_->Write(links_.host_.replication().BeginGreeting(&greeting_, "cluster", said_));
  }
  uint64_t said() const { return said_; }
  void OnBytes(std::string_view bytes) override {
    if (dead_) return;
    heard_micros_ = links_.now();
    if (greeted_) return Read(bytes);
    std::string rest;
    const Result<bool> done = greeting_.Take(bytes, &rest);
    if (!done.ok()) return Fail(done.status().text());
    if (!*done) return;
    if (greeting_.node() == links_.host_.replication().node()) return Fail("that is this node");
    greeted_ = true;
    links_.host_.services().cluster_view.map_heard = 0;
    ReportIfDue();
    const bool is_of_head = links_.in_cluster() && links_.host_.store().engine().cluster().set == 0;
    // For all of it: what another director had told, or this one in another term, may have been
    // lost with it, and its version have become that of another map.
    if (!is_of_head) Say(FrameKind::kMapAsk, NumberBody(0));
    if (!rest.empty()) Read(rest);
  }
  void OnDrained() override {}
  void OnClosed(std::string_view why) override {
    link_ = nullptr;
    dialling_ = false;
    Fail(why);
  }

 private:
  void Read(std::string_view bytes) {
    reader_.Add(bytes);
    Frame frame;
    while (!dead_) {
      const Result<bool> next = reader_.Next(&frame);
      if (!next.ok()) return Fail(next.status().text());
      if (!*next) return;
      if (!Take(frame)) return Fail("it says what no director says");
    }
  }
  bool Take(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kMap:
        if (!frame.body.empty() && frame.body[0] == static_cast<char>(MapPart::kElsewhere))
          return Elsewhere(frame.body.substr(1));
        return links_.TakeMap(frame.body);
      case FrameKind::kCut:
        links_.TakeSchemaOrder(frame.body);
        return true;
      case FrameKind::kRelease:
        return TakeRelease(frame.body);
      default:
        return false;
    }
  }
  bool TakeRelease(std::string_view body) {
    uint64_t number = 0;
    if (!GetVarint64(&body, &number)) return false;
    if (number != 0) {
      Release(number);
      return body.empty();
    }
    is_told_ = true;
    links_.failure_.clear();
    return body.empty() || ReadNumber(body, &links_.host_.services().cluster_view.map_heard);
  }
  void Release(uint64_t number) {
    const auto confirmation = links_.member_.OnRelease(number);
    links_.SetHold(links_.member_.held_from(), links_.held_at_);
    if (!confirmation) return;
    CutAnswer answer{.number = confirmation->number,
                     .confirms = true,
                     .in_time = confirmation->in_time,
                     .commit_micros = CatalogChanges(links_.host_.store()).last_commit_micros(),
                     .clock_micros = links_.host_.clock().WallMicros()};
    std::string body;
    EncodeCutAnswer(answer, &body);
    Say(FrameKind::kCutAnswer, body);
  }
  bool Elsewhere(std::string_view body) {
    std::string_view host;
    uint64_t port = 0;
    if (!GetLengthPrefixed(&body, &host) || !GetVarint64(&body, &port) || port > UINT16_MAX ||
        !body.empty())
      return false;
    if (!host.empty() && IsPlainHost(host))
      links_.elsewhere_ = NodeAddress{std::string(host), static_cast<uint16_t>(port)};
    Fail("it is not the director");
    return true;
  }
  void Drop() {
    if (std::exchange(dialling_, false)) links_.dialler_.CancelDial(this);
    if (link_ != nullptr) link_->Close();
    link_ = nullptr;
    greeted_ = false;
  }

  ClusterLinks& links_;
  const NodeAddress address_;
  PeerLink* link_{nullptr};
  PeerGreeting greeting_;
  FrameReader reader_{FrameKind::kMap, FrameKind::kCut, FrameKind::kRelease};
  NodeReport told_;
  Lsn told_lsn_{};  // of the schema, when tablets were told last
  uint64_t users_seen_{0};
  int64_t report_micros_{0};
  int64_t begun_micros_{0};
  int64_t heard_micros_{0};
  bool is_told_{false};  // again and again that the director is there
  bool dialling_{false};
  bool greeted_{false};
  uint64_t said_{0};
  bool dead_{false};
};

// Another node's link to this one, which is the director, or not.
class ClusterLinks::Down final : public PeerHandler {
 public:
  Down(ClusterLinks& links, PeerLink* link, uint64_t set_id, uint64_t node, uint64_t features)
      : links_(links),
        link_(link),
        set_id_(set_id),
        node_(node),
        features_(features),
        heard_micros_(links.now()) {}
  ~Down() override {
    if (link_ != nullptr) link_->Close();
  }
  bool dead() const { return link_ == nullptr; }
  uint64_t set_id() const { return set_id_; }
  uint64_t node() const { return node_; }
  const NodeReport& report() const { return report_; }
  bool reported() const { return reported_; }
  std::optional<uint64_t> number() const { return number_; }
  bool leads() const { return !dead() && reported_ && report_.leads; }
  bool knows_cuts() const { return features_ >= kClusterLinkCuts; }
  uint64_t known() const { return features_; }

  void Say(FrameKind kind, std::string_view body) {
    if (!dead()) link_->Write(EncodeFrame(links_.Head(kind), body));
  }
  void SendAway(const std::optional<NodeAddress>& to) {
    std::string body(1, static_cast<char>(MapPart::kElsewhere));
    PutLengthPrefixed(&body, to ? to->host : std::string());
    PutVarint64(&body, to ? to->port : 0);
    Say(FrameKind::kMap, body);
  }
  void OnTick(bool stood_still) {
    const int64_t now = links_.now();
    if (stood_still) heard_micros_ = now;
    if (dead()) return;
    if (now - heard_micros_ > 3 * kReportMicros) return Fail("it is silent");
    if (now < pulse_micros_) return;
    pulse_micros_ = now + kPulseMicros;
    std::string body = NumberBody(0);
    if (known() >= kClusterLinkMapVersion) {
      ClusterMap& map = links_.host_.services().cluster_map;
      PutVarint64(&body, map.Current(links_.host_.store()).version());
    }
    Say(FrameKind::kRelease, body);
  }
  void Push() {
    if (dead() || !number_) return;
    Services& services = links_.host_.services();
    if (told_directory_ != links_.directory_version_) {
      told_directory_ = links_.directory_version_;
      std::string body(1, static_cast<char>(MapPart::kSets));
      services.cluster_view.sets.Encode(&body);
      Say(FrameKind::kMap, body);
    }
    const MapCache& map = services.cluster_map.Current(links_.host_.store());
    if (asked_ && told_map_ != map.version()) {
      std::string body(1, static_cast<char>(MapPart::kTablets));
      EncodeMapNews(map, told_map_, &body);
      told_map_ = map.version();
      Say(FrameKind::kMap, body);
    }
    const Acl::TakenOver& users = services.acl.taken_over();
    const int64_t now = links_.now();
    // A set whose log has just taken others refuses, and is told again.
    const bool is_due = told_users_ != users.index ||
                        (LacksUsers(Hash64(users.text)) && now - told_users_micros_ > kUsersMicros);
    if (*number_ != 0 && report_.leads && !users.text.empty() && is_due) {
      told_users_ = users.index;
      told_users_micros_ = now;
      Say(FrameKind::kMap, std::string(1, static_cast<char>(MapPart::kUsers)) + users.text);
    }
  }
  // It goes by the cluster's users, and not by these.
  bool LacksUsers(uint64_t users) const {
    return !dead() && number_ && reported_ && report_.users != 0 && report_.users != users;
  }
  // Of a set that has come back, and is not open yet: what it is told changes of the schema as.
  const std::optional<uint64_t>& told_as() const { return told_as_; }
  // Whether it belongs to a set of the cluster now.
  void Judge() {
    if (dead() || !reported_) return;
    // What was changed in this very turn is in the schema that it may be told of.
    links_.NoteCatalog();
    Services& services = links_.host_.services();
    Store& store = links_.host_.store();
    const auto& sets = services.cluster_map.Sets(store);
    const auto row = std::find_if(sets.begin(), sets.end(),
                                  [this](const auto& each) { return each.id == set_id_; });
    // Nobody is told what the next director may not know of.
    if (row != sets.end() && links_.returns_.AwaitsCommit(set_id_)) return;
    const bool was = number_.has_value();
    if (was && row == sets.end()) links_.NoteRemoved(*number_);
    number_ = row == sets.end() ? std::nullopt : std::optional(row->number);
    JudgeReturn();
    if (!number_ || *number_ == 0) return;
    if (!report_.leads) {
      // Nor while a change is not committed there: what it is to be told until then is told when it
      // reports again.
      const bool was_here = std::exchange(told_here_, false);
      if (was_here && links_.LeaderOf(*number_) == nullptr) links_.director_.OnLost(*number_);
      return;
    }
    ClusterSet set = report_.set;
    set.number = *number_;
    set.id = set_id_;
    set.leader = node_;
    set.draining = row->draining;
    links_.PutSet(std::move(set));
    const bool has_state = report_.cluster_id != 0;
    if (!was || !told_here_ || has_state != had_state_) {
      told_here_ = true;
      had_state_ = has_state;
      links_.director_.AddSet(*number_);
      links_.director_.OnReport(*number_,
                                has_state ? std::optional(report_.set.catalog) : std::nullopt);
    }
  }
  void Fail(std::string_view why) {
    if (dead()) return;
    Log(LogSeverity::kVerbose,
        fmt::format("Link of node {:016x} of set {:016x}: {}", node_, set_id_, why));
    link_->Close();
    OnClosed(why);
  }

  // --- PeerHandler
  void OnConnected(PeerLink*) override {}
  void OnBytes(std::string_view bytes) override {
    heard_micros_ = links_.now();
    reader_.Add(bytes);
    Frame frame;
    while (!dead()) {
      const Result<bool> next = reader_.Next(&frame);
      if (!next.ok()) return Fail(next.status().text());
      if (!*next) return;
      if (frame.from != node_) return Fail("it speaks for another one");
      if (!Take(frame)) return Fail("that is no report");
    }
  }
  void OnDrained() override {}
  void OnClosed(std::string_view) override {
    link_ = nullptr;
    if (reported_ && report_.leads) links_.NoteLost(set_id_, this);
    if (number_ && report_.leads) {
      links_.director_.OnLost(*number_);
      if (const ClusterSet* known = links_.host_.services().cluster_view.sets.Find(*number_);
          known != nullptr && known->leader == node_) {
        ClusterSet gone = *known;
        gone.leader = 0;
        if (links_.host_.services().cluster_view.sets.Put(gone)) ++links_.directory_version_;
      }
    }
  }

 private:
  static constexpr int64_t kUsersMicros{100'000};

  // It says that it serves as a set that is another replica set by now.
  bool IsReplaced(const ClusterState& state, const std::vector<MapTables::SetRow>& sets) const {
    return !links_.host_.closed() && state.IsOpenAs(set_id_) &&
           std::any_of(sets.begin(), sets.end(), [&](const MapTables::SetRow& row) {
             return row.number == state.set && row.id != set_id_;
           });
  }
  bool Take(const Frame& frame) {
    uint64_t number = 0;
    switch (frame.kind) {
      case FrameKind::kReport: {
        NodeReport report;
        if (!DecodeReport(frame.body, &report)) return false;
        if (!links_.directs()) {
          SendAway(links_.Director());
          return true;
        }
        return TakeReport(std::move(report));
      }
      case FrameKind::kMapAsk:
        if (!ReadNumber(frame.body, &number)) return false;
        asked_ = true;
        told_map_ = number;
        return true;
      case FrameKind::kCutAnswer:
        return TakeAnswer(frame.body);
      default:
        return false;
    }
  }
  void JudgeReturn() {
    const bool may = !number_ && report_.leads;
    const auto as = may ? links_.returns_.ToldAs(set_id_) : std::nullopt;
    const uint64_t up_to = as ? links_.returns_.ToldUpTo(*as) : 0;
    if (as == told_as_ && up_to == told_up_to_) return;
    if (told_as_ && !number_) links_.director_.OnLost(*told_as_);
    told_as_ = as;
    told_up_to_ = up_to;
    if (!as) return;
    links_.director_.AddSet(*as);
    links_.director_.OnReport(*as, report_.set.catalog);
  }
  bool TakeAnswer(std::string_view body) {
    CutAnswer answer;
    if (!DecodeCutAnswer(body, &answer)) return false;
    if (told_as_ && !answer.confirms) links_.director_.OnAnswer(*told_as_, answer.number);
    if (number_ && answer.confirms) {
      links_.cuts_.NoteClock(*number_, answer.clock_micros, answer.commit_micros);
      links_.director_.OnConfirmed(*number_, answer.number, answer.in_time);
    } else if (number_) {
      links_.director_.OnAnswer(*number_, answer.number);
    }
    links_.SetHold(links_.director_.held_from(), links_.held_at_);
    links_.host_.WakeTasks();
    return true;
  }
  bool TakeReport(NodeReport report) {
    const ClusterState& own = links_.host_.store().engine().cluster();
    if (report.cluster_id != 0 && report.cluster_id != own.cluster_id) {
      Fail("it is part of another cluster");
      return true;
    }
    // Others may have by now what a set had that was given up: none of its nodes serves it.
    if (report.cluster_id != 0 &&
        links_.host_.services().cluster_map.RemovedAs(links_.host_.store(), set_id_))
      Say(FrameKind::kMap, std::string(1, static_cast<char>(MapPart::kReplaced)));
    if (report.tells_tablets) {
      ClusterState state;
      TabletsByTable tablets;
      if (!DecodeClusterState(report.tablets, &state, &tablets)) return false;
      report.tablets.clear();
      const bool was_removed =
          links_.host_.services().cluster_map.RemovedAs(links_.host_.store(), set_id_).has_value();
      if (report.leads && !was_removed) links_.returns_.TakeReport(set_id_, {state, tablets});
      const auto& sets = links_.host_.services().cluster_map.Sets(links_.host_.store());
      const auto row = std::find_if(sets.begin(), sets.end(),
                                    [this](const auto& each) { return each.id == set_id_; });
      const bool is_its = row != sets.end() && row->number == state.set && row->number != 0;
      if (report.leads && !was_removed && IsReplaced(state, sets))
        Say(FrameKind::kMap, std::string(1, static_cast<char>(MapPart::kReplaced)));
      if (is_its && report.leads) {
        links_.host_.services().cluster_map.TakeClaims(links_.host_.store(),
                                                       links_.host_.replication().term(), state.set,
                                                       std::move(tablets), state.catalog);
        ClusterPart::Tend(links_.host_);
      }
    }
    const bool is_elsewhere = report.zone != report_.zone || report.machine != report_.machine;
    if (report.users != report_.users) links_.host_.WakeTasks();
    if (reported_ && report_.leads && !report.leads) links_.NoteLost(set_id_, this);
    report_ = std::move(report);
    reported_ = true;
    Judge();
    const ClusterSet* const known =
        is_elsewhere ? links_.host_.services().cluster_view.sets.FindId(set_id_) : nullptr;
    if (known != nullptr) links_.PutSet(*known);
    return true;
  }

  ClusterLinks& links_;
  PeerLink* link_;
  const uint64_t set_id_;
  const uint64_t node_;
  const uint64_t features_;
  FrameReader reader_{FrameKind::kReport, FrameKind::kMapAsk, FrameKind::kCutAnswer};
  NodeReport report_;
  bool reported_{false};
  bool asked_{false};
  bool told_here_{false};
  bool had_state_{false};
  std::optional<uint64_t> number_;  // of its set; nothing: it is none of the cluster's
  std::optional<uint64_t> told_as_;
  uint64_t told_up_to_{0};
  uint64_t told_directory_{0};
  uint64_t told_map_{0};
  uint64_t told_users_{0};
  int64_t told_users_micros_{0};
  int64_t heard_micros_;
  int64_t pulse_micros_{0};
};

ClusterLinks::ClusterLinks(Host& host, ReplicationHost& dialler)
    : host_(host), dialler_(dialler), returns_(host), backup_cuts_(host), digest_cuts_(host) {}

ClusterLinks::~ClusterLinks() = default;

FrameHead ClusterLinks::Head(FrameKind kind) const {
  const Replication& replication = host_.replication();
  return {.kind = kind,
          .room = true,
          .term = replication.term(),
          .from = replication.node(),
          .sent_micros = 0,
          .echo_micros = 0};
}

bool ClusterLinks::has_state() const {
  return set() != nullptr && !host_.loading() && !set()->is_witness() && !set()->is_empty() &&
         !set()->member().state_is_void();
}

bool ClusterLinks::in_cluster() const { return host_.store().engine().cluster().active(); }

bool ClusterLinks::leads() const { return has_state() && set()->open() && set()->may_append(); }

bool ClusterLinks::directs() const {
  return leads() && in_cluster() && host_.store().engine().cluster().set == 0;
}

PeerHandler* ClusterLinks::Accept(PeerLink* link, uint64_t set_id, uint64_t node,
                                  uint64_t features) {
  downs_.push_back(std::make_unique<Down>(*this, link, set_id, node, features));
  return downs_.back().get();
}

// --- holds

void ClusterLinks::SetHold(uint64_t held_from, Lsn before) {
  const bool holds = held_from != 0;
  if (holds && !holds_) {
    held_at_ = before;
    held_since_micros_ = now();
  } else if (!holds && holds_) {
    cuts_.NoteHold(now() - held_since_micros_);
    // Who waits for the replies sends nothing until then, and so nobody would look.
    host_.WakeTasks();
  }
  holds_ = holds;
  host_.services().cluster_view.replies_are_held = holds;
}

// --- cuts

Status ClusterLinks::CheckSets() const {
  for (const MapTables::SetRow& row : host_.services().cluster_map.Sets(host_.store())) {
    if (row.number == 0) continue;
    const Down* const leader = LeaderOf(row.number);
    if (leader == nullptr) {
      return Status::Error(ErrorCode::kTryAgain,
                           fmt::format("set {} is away; nothing was done", row.number));
    }
    if (!leader->knows_cuts()) {
      return Status::Error(
          ErrorCode::kErr,
          fmt::format("that needs feature level {} of all sets, and set {} has it not yet",
                      kCutsLevel, row.number));
    }
  }
  return Status::Ok();
}

void ClusterLinks::NoteKnown() {
  for (const auto& down : downs_) {
    if (!down->leads()) continue;
    // Also of a set that has come back, and is not open yet.
    const uint64_t number = down->number().value_or(down->report().set.number);
    uint64_t& known = known_[number];
    known = std::max(known, down->known());
  }
  uint64_t least = kClusterLinkTypes;
  for (const auto& set : host_.services().cluster_map.Sets(host_.store())) {
    const auto known = known_.find(set.number);
    if (set.number != 0) least = std::min(least, known == known_.end() ? 0 : known->second);
  }
  host_.services().cluster_map.SetKnown(least);
}

void ClusterLinks::NoteCatalog() {
  Store& store = host_.store();
  const uint64_t catalog = store.engine().cluster().catalog;
  if (catalog == catalog_seen_) return;
  catalog_seen_ = catalog;
  catalog_micros_ = now();
  catalog_lsn_ = store.last_lsn();
  if (!director_.active() || catalog <= director_.changed()) return;
  director_.OnChanged(catalog, now());
  SetHold(director_.held_from(), last_seen_);
}

// What is committed of it is told to others.
void ClusterLinks::NoteCommitted() {
  if (set()->set().commit().seq < catalog_lsn_.seq) return;
  if (director_.active() && director_.committed() < director_.changed()) {
    director_.OnCommitted(director_.changed(), MapTables(host_.store()).FirstChange());
    SetHold(director_.held_from(), held_at_);
    host_.WakeTasks();
  }
  if (leads_ && up_ != nullptr && up_->stands() && answered_ != catalog_seen_ && in_cluster()) {
    answered_ = catalog_seen_;
    up_->ReportIfDue();
    up_->Say(FrameKind::kCutAnswer, NumberBody(answered_));
  }
}

// In this order: replies that a hold has kept until now leave in this turn.
void ClusterLinks::BeforeReplies() {
  if (!has_state()) return;
  NoteCatalog();
  NoteCommitted();
  last_seen_ = host_.store().last_lsn();
}

// --- roles

void ClusterLinks::UpdateRole() {
  returns_.Note();
  if (!has_state() || !in_cluster()) {
    if (director_.active()) director_.End();
    leads_ = false;
    SetHold(0, {});
    ClusterView& view = host_.services().cluster_view;
    if (!view.sets.empty() || view.map.version() != 0) {
      view = {};
      // The director believes that all of it is known here: it is asked anew.
      if (up_ != nullptr) up_->Fail("this node has forgotten what it was told");
    }
    return;
  }
  NoteCatalog();
  if (host_.store().engine().cluster().set == 0)
    (void)host_.services().cluster_map.Sets(host_.store());
  const uint32_t term = host_.replication().term();
  const bool is_director = directs();
  if (is_director) {
    host_.services().director = this;
    CatalogChanges::SetKeeper(host_.store(), &host_.services().cluster_map);
  }
  if (is_director && (!director_.active() || term != term_)) {
    term_ = term;
    leads_ = false;
    up_.reset();
    returns_.Clear();
    director_.Begin(catalog_seen_, catalog_micros_, now());
    cuts_.BeginTerm();
    holds_ = false;
    SetHold(director_.held_from(), {});
    Services& services = host_.services();
    for (const MapTables::SetRow& row : services.cluster_map.Sets(host_.store())) {
      if (row.number == 0) continue;
      director_.AddSet(row.number);
      if (services.cluster_view.sets.Find(row.number) == nullptr)
        (void)services.cluster_view.sets.Put({.number = row.number, .id = row.id});
    }
    DropRemoved();
    here_micros_.clear();
    begun_micros_ = now();
    ++directory_version_;
  } else if (!is_director && director_.active()) {
    director_.End();
    SetHold(0, {});
  }
  const bool is_member = !is_director && leads() && host_.store().engine().cluster().set != 0;
  if (is_member && (!leads_ || term != term_)) {
    term_ = term;
    leads_ = true;
    answered_ = 0;
    member_.Begin(catalog_seen_, catalog_micros_, now());
    holds_ = false;
    SetHold(member_.held_from(), {});
  } else if (!is_member && leads_) {
    leads_ = false;
    member_.End();
    SetHold(0, {});
  }
}

void ClusterLinks::OnRoleChanged() {
  if (set() == nullptr) return;
  UpdateRole();
  if (!directs())
    for (const auto& down : downs_) down->SendAway(Director());
}

// --- the turn

void ClusterLinks::OnTurn() {
  if (!has_state()) return;
  UpdateRole();
  std::erase_if(downs_, [](const auto& down) { return down->dead(); });
  if (director_.active())
    for (const auto& down : downs_) down->Push();
  if (up_ != nullptr && up_->dead()) up_.reset();
  if (up_ != nullptr) {
    up_->ReportTablets();
    up_->ReportUsers();
  }
}

void ClusterLinks::OnTick() {
  if (!has_state()) return;
  if (!users_due_.empty()) TakeUsers(std::exchange(users_due_, {}));
  host_.services().cut_listeners[CutPurpose::kBackup] = &backup_cuts_;
  backup_cuts_.OnTick();
  digest_cuts_.OnTick();
  UpdateRole();
  const bool stood_still = now() - std::exchange(tick_micros_, now()) > kPulseMicros;
  if (director_.active()) {
    for (const auto& down : downs_) down->OnTick(stood_still);
    director_.OnTick(now());
    SetHold(director_.held_from(), held_at_);
    if (now() >= directory_micros_) {
      directory_micros_ = now() + 1'000'000;
      PutSet(OwnClusterSet(host_));
    }
    for (const auto& down : downs_) down->Judge();
    NoteKnown();
    for (const auto& down : downs_)
      if (down->leads() && down->number()) here_micros_[*down->number()] = now();
    if (!host_.closed()) cuts_.OnTick();
    TendReturns();
    if (host_.services().config.cluster_admit && !host_.closed()) AdmitWaiting();
    if (now() >= forget_micros_) {
      forget_micros_ = now() + 1'000'000;
      ForgetChanges();
    }
    host_.WakeTasks();
    return;
  }
  if (leads_) {
    member_.OnTick(now());
    SetHold(member_.held_from(), held_at_);
    if (returns_.OnTick(false, nullptr)) host_.WakeTasks();
  }
  const bool wants = in_cluster() || (!host_.services().config.cluster_join.empty() && leads());
  if (!wants) {
    up_.reset();
    return;
  }
  TellWhyAlone();
  if (up_ != nullptr) {
    up_->OnTick(stood_still);
    up_->ReportIfDue();
    if (up_->stands() && leads_ && up_->said() < Known()) up_->Fail("it knows more now");
    if (!up_->dead()) return;
    up_.reset();
  }
  if (now() < redial_micros_) return;
  redial_micros_ = now() + kRedialMicros;
  const std::vector<NodeAddress> candidates = Candidates();
  if (candidates.empty()) return;
  const NodeAddress to = elsewhere_ ? *std::exchange(elsewhere_, std::nullopt)
                                    : candidates[next_candidate_++ % candidates.size()];
  answered_ = 0;
  up_ = std::make_unique<Up>(*this, to);
  up_->Begin();
}

// --- the director

ClusterLinks::Down* ClusterLinks::LeaderOf(uint64_t number) const {
  // The newest link, of several that say so.
  for (auto down = downs_.rbegin(); down != downs_.rend(); ++down)
    if ((*down)->leads() && (*down)->number() == number) return down->get();
  return nullptr;
}

void ClusterLinks::TellChange(uint64_t set, uint64_t number) {
  Down* leader = LeaderOf(set);
  if (leader == nullptr) {
    // One that has come back has something already, and is not to have all yet.
    const auto told = std::find_if(downs_.begin(), downs_.end(), [set](const auto& down) {
      return !down->dead() && down->told_as() == set;
    });
    if (told == downs_.end() || number == 0 || number > returns_.ToldUpTo(set)) return;
    leader = told->get();
  }
  Store& store = host_.store();
  SchemaOrder order{.cluster_id = store.engine().cluster().cluster_id,
                    .set = set,
                    .whole = number == 0,
                    .change = {}};
  CatalogChange change;
  if (number == 0) {
    // What is not committed may never be. When it reports again it is told.
    if (store.engine().cluster().catalog != director_.committed())
      return leader->Fail("the schema is being changed");
    Result<std::string> whole = CatalogChanges::Whole(store.engine());
    if (!whole.ok()) return leader->Fail(whole.status().text());
    // Tables may have been made since it was admitted, and it was dealt a part.
    change = {.number = director_.committed(),
              .ops = *std::move(whole),
              .parts = host_.services().cluster_map.PartsBehind(store, 0, set)};
  } else if (!MapTables(store).ReadChange(number, &change)) {
    return leader->Fail(fmt::format("change {} of the schema is not kept any more", number));
  }
  EncodeCatalogChange(change, &order.change);
  std::string body;
  EncodeSchemaOrder(order, &body);
  leader->Say(FrameKind::kCut, body);
}

void ClusterLinks::TellRelease(uint64_t set, uint64_t number) {
  if (Down* const leader = LeaderOf(set)) leader->Say(FrameKind::kRelease, NumberBody(number));
}

void ClusterLinks::AdmitWaiting() {
  if (host_.store().in_transaction()) return;
  for (const WaitingSet& waiting : Waiting()) {
    if (!waiting.refusal.empty()) continue;
    const ClusterTelling telling(host_);
    const std::string what = fmt::format("set {:016x}", waiting.set.id);
    const Result<uint64_t> number = host_.services().cluster_map.Admit(
        host_.store(), host_.replication().term(), waiting.set.id, what, "cluster-admit yes");
    if (!number.ok()) {
      Log(LogSeverity::kVerbose,
          fmt::format("{} is not admitted: {}", what, number.status().text()));
      return;
    }
    Log(LogSeverity::kNotice, fmt::format("{} is set {} from now on", what, *number));
    OnAdmitted();
  }
}

void ClusterLinks::TendReturns() {
  const auto say = [this](uint64_t set_id, std::string_view order) {
    bool is_said = false;
    for (const auto& down : downs_) {
      const bool is_its = down->leads() && down->set_id() == set_id;
      if (!is_its || down->known() < kClusterLinkSettle) continue;
      down->Say(FrameKind::kMap,
                std::string(1, static_cast<char>(MapPart::kSettle)) + std::string(order));
      is_said = true;
    }
    return is_said;
  };
  if (!returns_.OnTick(true, say)) return;
  OnAdmitted();
  host_.WakeTasks();
}

// Another link of the same set may be that of its next leader.
void ClusterLinks::NoteLost(uint64_t set_id, const Down* link) {
  const bool is_there = std::any_of(downs_.begin(), downs_.end(), [&](const auto& down) {
    return down.get() != link && down->leads() && down->set_id() == set_id;
  });
  if (!is_there) returns_.Lost(set_id);
}

std::vector<WaitingSet> ClusterLinks::Waiting() const {
  std::vector<WaitingSet> waiting;
  if (!director_.active()) return waiting;
  for (const auto& down : downs_) {
    if (!down->leads() || down->number().has_value()) continue;
    // What has a state of this cluster has come back, unless it was removed.
    const std::optional<uint64_t> removed =
        host_.services().cluster_map.RemovedAs(host_.store(), down->set_id());
    if (down->report().cluster_id != 0 && !removed) continue;
    WaitingSet set{.set = down->report().set, .refusal = down->report().refusal};
    set.set.id = down->set_id();
    set.set.leader = down->node();
    if (set.refusal.empty() && !down->knows_cuts() && !host_.store().engine().feeds().empty())
      set.refusal = "members of an earlier version, which know no feeds of clusters";
    if (removed) {
      set.refusal = fmt::format(
          "data of set {}, which was removed from the cluster (empty it to join)", *removed);
    }
    std::erase_if(waiting, [&set](const WaitingSet& each) { return each.set.id == set.set.id; });
    waiting.push_back(std::move(set));
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const WaitingSet& a, const WaitingSet& b) { return a.set.id < b.set.id; });
  return waiting;
}

std::optional<uint64_t> ClusterLinks::WhoLacks(uint64_t catalog) const {
  return director_.active() ? director_.WhoLacks(catalog) : std::optional<uint64_t>(0);
}

void ClusterLinks::OnAdmitted() {
  DropRemoved();
  PutSet(OwnClusterSet(host_));
  for (const auto& down : downs_) down->Judge();
  NoteKnown();
}

void ClusterLinks::FillMembers(ClusterSet* set) const {
  for (ClusterMember& member : set->members) {
    for (const auto& down : downs_) {
      if (down->dead() || !down->reported() || down->node() != member.node) continue;
      member.zone = down->report().zone;
      member.machine = down->report().machine;
    }
  }
}

// Who has lost its link may hear of nothing, and is not waited for: it would be for ever.
std::optional<std::string> ClusterLinks::WhoLacksUsers() const {
  if (!director_.active()) return std::nullopt;
  const Services& services = host_.services();
  const uint64_t users = Hash64(services.acl.taken_over().text);
  for (const auto& down : downs_) {
    if (!down->LacksUsers(users)) continue;
    const ClusterSet* const set = services.cluster_view.sets.FindId(down->set_id());
    const ClusterMember* const member = set == nullptr ? nullptr : set->Find(down->node());
    return member == nullptr ? fmt::format("node {:016x}", down->node())
                             : fmt::format("{}:{}", member->host, member->port);
  }
  return std::nullopt;
}

// --- what the director says

bool ClusterLinks::TakeMap(std::string_view body) {
  if (body.empty()) return false;
  const auto part = static_cast<MapPart>(body[0]);
  body.remove_prefix(1);
  ClusterView& view = host_.services().cluster_view;
  switch (part) {
    case MapPart::kSets:
      return view.sets.Decode(body);
    case MapPart::kTablets:
      // Set 0 has its own.
      return in_cluster() && host_.store().engine().cluster().set == 0
                 ? true
                 : TakeMapNews(body, &view.map);
    case MapPart::kReplaced:
      if (!body.empty()) return false;
      // What was known of it is of before; the director says if it is one again.
      if (in_cluster()) view.sets.Remove(host_.store().engine().cluster().set);
      returns_.NoteReplaced();
      return true;
    case MapPart::kUsers:
      TakeUsers(std::string(body));
      return true;
    case MapPart::kSettle:
      return returns_.TakeSettlement(body);
    default:
      return false;
  }
}

void ClusterLinks::TakeSchemaOrder(std::string_view body) {
  SchemaOrder order;
  CatalogChange change;
  if (!DecodeSchemaOrder(body, &order) || !DecodeCatalogChange(order.change, &change))
    return up_->Fail("it says what no director says");
  if (!leads()) return up_->Fail("this node does not lead its set");
  Store& store = host_.store();
  const ClusterState& own = store.engine().cluster();
  const Lsn before = store.last_lsn();
  Status status;
  bool fits = false;
  if (order.whole) {
    if (own.active()) return;  // it was told already
    status = CatalogChanges(store).Join({.cluster_id = order.cluster_id, .set = order.set}, change);
    if (status.ok()) {
      Log(LogSeverity::kNotice,
          fmt::format("This set is set {} of cluster {:016x}", order.set, order.cluster_id));
    }
  } else {
    if (!own.active() || own.cluster_id != order.cluster_id || own.set != order.set)
      return up_->Fail("an order for another set");
    if (!leads_ || !member_.Wants(change.number)) return;
    status = CatalogChanges(store).Apply(change, &fits);
  }
  if (!status.ok()) {
    Log(LogSeverity::kWarning, fmt::format("Change {} of the cluster's schema cannot be taken: {}",
                                           change.number, status.text()));
    return up_->Fail(status.text());
  }
  NoteCatalog();
  if (order.whole) {
    UpdateRole();
    up_->ReportIfDue();
    return;
  }
  member_.OnChanged(change.number, now());
  if (change.cut.is_cut()) {
    member_.OnCut(change.number, fits);
    TellListeners(change.cut, change.number);
  }
  SetHold(member_.held_from(), before);
}

}  // namespace cellar
