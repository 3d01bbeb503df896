// See tracking.h.
// Remember notes what a command reads. RowChanged, TableChanged and AllChanged bring what has
// changed, Tell finds out who has to hear of it, Send writes the message.
#include "commands/session/tracking.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/catalog/command_keys.h"
#include "commands/catalog/command_table.h"
#include "commands/session/host.h"
#include "commands/session/pubsub.h"
#include "commands/session/services.h"
#include "commands/session/session.h"
#include "engine/table/table.h"
#include "store/store.h"

namespace cellar {
namespace {

// False if `row` is no key of the table.
bool AppendRow(const Table& table, std::string_view row, std::string* name) {
  name->push_back(':');
  const Order& order = table.schema().key;
  if (order.is_plain_bytes()) {
    name->append(row);
    return true;
  }
  std::string encoded;
  return order.Encode(row, &encoded).ok() && order.Decode(encoded, name);
}

void Insert(std::vector<uint64_t>* ids, uint64_t id) {
  const auto at = std::lower_bound(ids->begin(), ids->end(), id);
  if (at == ids->end() || *at != id) ids->insert(at, id);
}

// Whether what changed lies under `prefix`, or `prefix` in the table that changed as a whole.
bool Concerns(std::string_view prefix, std::string_view name, bool whole_table) {
  if (name.starts_with(prefix)) return true;
  return whole_table && prefix.size() > name.size() && prefix.starts_with(name) &&
         prefix[name.size()] == ':';
}

size_t BytesOf(const std::set<std::string>& names) {
  constexpr size_t kNodeBytes{64};  // of a set, about
  size_t bytes = kNodeBytes;
  for (const std::string& name : names) bytes += kNodeBytes + name.size();
  return bytes;
}

}  // namespace

std::string TrackedTableName(std::string_view keyspace, std::string_view table) {
  std::string name;
  if (keyspace != "0") name.append(keyspace).push_back('/');
  return name.append(table);
}

std::string TrackedName(const Table& table, const std::string_view* row) {
  std::string name = TrackedTableName(table.keyspace(), table.name());
  if (row != nullptr && !AppendRow(table, *row, &name)) name.clear();
  return name;
}

// What an owner has told holds for its own log: the next one, which may lack the end of that, gives
// its steps times of its own.
void PassedWrites::Begin() {
  if (!std::exchange(under_way_, true)) told_micros_ = 0;
}

void PassedWrites::Add(int64_t told_micros, std::span<const WrittenSteps> steps) {
  told_micros_ = std::max(told_micros_, told_micros);
  steps_.insert(steps_.end(), steps.begin(), steps.end());
  if (steps_.size() <= kStepsMax) return;
  steps_.erase(steps_.begin(),
               steps_.begin() + static_cast<std::ptrdiff_t>(steps_.size() - kStepsMax / 2));
}

PassedWrites::Answer PassedWrites::HasWritten(int64_t step_micros) const {
  const auto behind = std::upper_bound(
      steps_.begin(), steps_.end(), step_micros,
      [](int64_t micros, const WrittenSteps& steps) { return micros < steps.first_micros; });
  if (behind != steps_.begin() && step_micros <= std::prev(behind)->last_micros)
    return Answer::kYes;
  return under_way_ && step_micros > told_micros_ ? Answer::kUnknown : Answer::kNo;
}

// Prefixes add up from call to call, all other options are replaced.
void Tracking::Enable(Session& session, const TrackingState& options) {
  CELLAR_ASSERT(!options.optin || !options.optout);
  CELLAR_ASSERT(options.bcast || options.prefixes.empty());
  // Else names would stay in prefixes_ for a client that is no longer in BCAST mode.
  CELLAR_ASSERT(!session.tracking || session.tracking->bcast == options.bcast);
  if (!session.tracking) {
    session.tracking = std::make_unique<TrackingState>();
    ++clients_;
  }
  TrackingState& state = *session.tracking;
  std::set<std::string, std::less<>> prefixes = std::move(state.prefixes);
  state = options;
  if (options.bcast) {
    if (options.prefixes.empty() && prefixes.empty()) prefixes.emplace();
    prefixes.insert(options.prefixes.begin(), options.prefixes.end());
    for (const std::string& prefix : prefixes) Insert(&prefixes_[prefix], session.id);
  }
  state.prefix_bytes = 0;
  for (const std::string& prefix : prefixes) state.prefix_bytes += 2 * (prefix.size() + kNameBytes);
  state.prefixes = std::move(prefixes);
}

void Tracking::Disable(Session& session) {
  if (!session.tracking) return;
  for (const std::string& prefix : session.tracking->prefixes) {
    const auto found = prefixes_.find(prefix);
    CELLAR_ASSERT(found != prefixes_.end());
    const size_t erased = std::erase(found->second, session.id);
    CELLAR_ASSERT(erased == 1);
    if (found->second.empty()) prefixes_.erase(found);
  }
  session.tracking.reset();
  CELLAR_ASSERT(clients_ > 0);
  if (--clients_ > 0) return;
  CELLAR_ASSERT(prefixes_.empty());
  // Nobody is left whom the names could be told to.
  keys_.clear();
  items_ = 0;
  name_bytes_ = 0;
  if (!news_.wanted()) waiting_.clear();
}

void Tracking::SetWriter(const Session& session) { writer_ = session.id; }

// A command is remembered by the names in its words, whatever it has found: a row that is not there
// can come to be.
std::vector<Tracking::ReadName> Tracking::NamesOf(Host& host, const Session& session,
                                                  const CommandEntry& command, Arguments args) {
  CELLAR_ASSERT(session.tracking != nullptr);
  std::vector<ReadName> names;
  const TrackingState& state = *session.tracking;
  if (!command.Has(kReadonly)) return names;
  if (state.optin ? !state.caching : state.optout && state.caching) return names;
  const KeySpec& spec = command.row->keys;
  for (const size_t position : KeyPositions(spec, args)) {
    const std::string_view word = args[position];
    const TableName table = SplitTableName(session.keyspace, word);
    // What is in a snapshot never changes, and nothing can come to have no name.
    if (table.table.empty()) continue;
    if (table.table.find(kSnapshotSign) != std::string_view::npos) continue;
    std::string name = TrackedTableName(table.keyspace, table.table);
    if (spec.row > 0 && static_cast<size_t>(spec.row) < args.size()) {
      // A table that is not there is remembered as a whole: its creation is what can change.
      const Result<Table*> found = host.store().FindTable(session.keyspace, word);
      if (found.ok() && !AppendRow(**found, args[static_cast<size_t>(spec.row)], &name)) continue;
    }
    const bool is_plain = table.table.size() == word.size();
    names.push_back({std::move(name), is_plain ? kPlain : kWithKeyspace});
  }
  return names;
}

void Tracking::Remember(Host& host, Session& session, const CommandEntry& command, Arguments args) {
  CELLAR_ASSERT(session.tracking != nullptr);
  if (!session.tracking->bcast) RememberNames(host, session, NamesOf(host, session, command, args));
}

void Tracking::RememberNames(Host& host, const Session& session,
                             const std::vector<ReadName>& names) {
  for (const ReadName& read : names)
    RememberName(host, read.name, Reader{session.id, read.spellings});
}

bool Tracking::Remembers(const Session& session, std::string_view name) const {
  const auto found = keys_.find(name);
  if (found == keys_.end()) return false;
  const Readers& readers = found->second;
  const auto at = std::lower_bound(readers.begin(), readers.end(), session.id,
                                   [](Reader one, uint64_t id) { return one.id < id; });
  return at != readers.end() && at->id == session.id;
}

void Tracking::AddReader(Readers* readers, Reader reader) {
  const auto at = std::lower_bound(readers->begin(), readers->end(), reader,
                                   [](Reader one, Reader other) { return one.id < other.id; });
  if (at == readers->end() || at->id != reader.id) {
    readers->insert(at, reader);
  } else {
    at->spellings |= reader.spellings;
  }
}

void Tracking::RememberName(Host& host, std::string name, Reader reader) {
  CELLAR_ASSERT(!name.empty());
  const size_t name_bytes = name.size();
  Readers& readers = keys_[std::move(name)];
  if (readers.empty()) name_bytes_ += name_bytes;
  const size_t before = readers.size();
  AddReader(&readers, reader);
  items_ += readers.size() - before;
  Shrink(host, static_cast<size_t>(host.services().config.tracking_table_max_keys));
}

void Tracking::Shrink(Host& host, size_t keys_max) {
  while (keys_max > 0 && keys_.size() > keys_max) {
    auto next = keys_.upper_bound(last_forgotten_);
    if (next == keys_.end()) next = keys_.begin();
    last_forgotten_ = next->first;
    const std::string name = next->first;
    const size_t keys_before = keys_.size();
    TellReaders(host, name, {Extent::kRow, name, {}});
    CELLAR_ASSERT(keys_.size() < keys_before);
  }
}

void Tracking::EndCaching(Session& session, const CommandEntry& command) {
  CELLAR_ASSERT(session.tracking != nullptr);
  // Said before MULTI, it holds for all of the transaction: it ends with EXEC itself.
  if (session.exec_running || session.in_multi()) return;
  // CLIENT CACHING, or any other CLIENT, does not use it up.
  const CommandEntry* container = command.parent != nullptr ? command.parent : &command;
  if (container->row->name != "client") session.tracking->caching = false;
}

void Tracking::RowChanged(Host& host, const Table& table, std::string_view row) {
  std::string name = TrackedTableName(table.keyspace(), table.name());
  if (AppendRow(table, row, &name)) Changed(host, {Extent::kRow, std::move(name), {.id = writer_}});
}

void Tracking::RowReclaimed(Host& host, const Table& table, std::string_view row_key) {
  std::string name = TrackedTableName(table.keyspace(), table.name()) + ':';
  // Nobody's writing: NOLOOP does not keep it from anyone.
  if (table.schema().key.Decode(row_key, &name)) {
    Changed(host, {Extent::kRow, std::move(name), {}});
  }
}

void Tracking::TableChanged(Host& host, std::string_view keyspace, std::string_view table) {
  Changed(host, {Extent::kTable, TrackedTableName(keyspace, table), {.id = writer_}});
}

void Tracking::AllChanged(Host& host) { Changed(host, {Extent::kAll, {}, {.id = writer_}}); }

void Tracking::Changed(Host& host, Change change) {
  if (host.store().in_transaction()) {
    waiting_.push_back(std::move(change));
  } else {
    TellOwn(host, {&change, 1});
  }
}

void Tracking::TellOwn(Host& host, std::span<const Change> changes) {
  if (news_.wanted()) {
    for (const Change& change : changes) news_.Add(change.name);
    if (news_.TakeAwaited()) host.WakeTasks();
  }
  if (clients_ > 0) Tell(host, changes);
}

void Tracking::Publish(Host& host) {
  CELLAR_ASSERT(!host.store().in_transaction());
  const std::vector<Change> changes = std::exchange(waiting_, {});
  TellOwn(host, changes);
}

// In the order in which things changed. Messages of BCAST clients are collected, so that a
// transaction comes as one, and sent before a message that says that everything has changed.
void Tracking::Tell(Host& host, std::span<const Change> changes) {
  Broadcasts broadcasts;
  for (const Change& change : changes) {
    if (change.extent == Extent::kAll) {
      SendBroadcasts(host, &broadcasts);
      TellAll(host, change.writer);
      continue;
    }
    if (change.extent == Extent::kRow) {
      TellReaders(host, change.name, change);
      // Who has scanned the table holds this row too.
      const size_t colon = change.name.find(':');
      TellReaders(host, std::string_view(change.name).substr(0, colon), change);
    } else {
      TellReadersBelow(host, change);
    }
    CollectBroadcasts(host, change, &broadcasts);
  }
  SendBroadcasts(host, &broadcasts);
}

void Tracking::TellAll(Host& host, Writer writer) {
  keys_.clear();
  items_ = 0;
  name_bytes_ = 0;
  host.ForEachSession([&](const Session& session) {
    if (session.tracking) Send(host, session.id, {}, writer);
  });
}

// tracking-names decides between the row's name, the table as the client wrote it, and both.
void Tracking::AddNames(const Host& host, std::string_view name, uint8_t spellings, Names* names) {
  CELLAR_ASSERT(spellings != 0);
  const auto choice = static_cast<TrackingNames>(host.services().config.tracking_names);
  if (choice != TrackingNames::kTable) names->emplace(name);
  if (choice == TrackingNames::kRow) return;
  const std::string_view table = name.substr(0, name.find(':'));
  const size_t slash = table.find('/');
  const bool in_first = slash == std::string_view::npos;  // keyspace 0
  if ((spellings & kPlain) != 0) names->emplace(in_first ? table : table.substr(slash + 1));
  if ((spellings & kWithKeyspace) == 0) return;
  names->insert(in_first ? "0/" + std::string(table) : std::string(table));
}

// Tells the readers of exactly `name`, and forgets them.
void Tracking::TellReaders(Host& host, std::string_view name, const Change& change) {
  const auto found = keys_.find(name);
  if (found == keys_.end()) return;
  const auto [key, readers] = std::pair(found->first, std::move(found->second));
  CELLAR_ASSERT(items_ >= readers.size());
  CELLAR_ASSERT(name_bytes_ >= key.size());
  items_ -= readers.size();
  name_bytes_ -= key.size();
  keys_.erase(found);
  for (const Reader reader : readers) {
    Names names;
    AddNames(host, key, reader.spellings, &names);
    Send(host, reader.id, names, change.writer);
  }
}

// Tells all who have read anything of the table, each once.
void Tracking::TellReadersBelow(Host& host, const Change& change) {
  const auto forget = [this](auto begin, auto end, std::map<uint64_t, uint8_t>* told) {
    for (auto at = begin; at != end; ++at) {
      CELLAR_ASSERT(items_ >= at->second.size());
      CELLAR_ASSERT(name_bytes_ >= at->first.size());
      items_ -= at->second.size();
      name_bytes_ -= at->first.size();
      for (const Reader reader : at->second) (*told)[reader.id] |= reader.spellings;
    }
    keys_.erase(begin, end);
  };
  std::map<uint64_t, uint8_t> readers;
  const auto whole = keys_.find(change.name);
  if (whole != keys_.end()) forget(whole, std::next(whole), &readers);
  // The rows' names lie between `table:` and `table;`.
  forget(keys_.lower_bound(change.name + ':'), keys_.lower_bound(change.name + ';'), &readers);
  for (const auto& [id, spellings] : readers) {
    Names names;
    AddNames(host, change.name, spellings, &names);
    Send(host, id, names, change.writer);
  }
}

// How a client in BCAST mode writes a table is not known: it gets the name that it needs in its
// keyspace, and the one with the keyspace if that is another one.
void Tracking::CollectBroadcasts(Host& host, const Change& change, Broadcasts* broadcasts) const {
  const size_t slash = change.name.substr(0, change.name.find(':')).find('/');
  const std::string_view keyspace =
      slash == std::string::npos ? "0" : std::string_view(change.name).substr(0, slash);
  for (const auto& [prefix, ids] : prefixes_) {
    if (!Concerns(prefix, change.name, change.extent == Extent::kTable)) continue;
    for (const uint64_t id : ids) {
      const Session* const session = host.FindSession(id);
      if (session == nullptr) continue;
      const auto [at, is_new] = broadcasts->try_emplace({prefix, id});
      Broadcast& told = at->second;
      // What several have changed NOLOOP keeps from none of them.
      if (is_new) told.writer = change.writer;
      if (told.writer != change.writer) told.writer = {};
      const bool own = session->keyspace == keyspace;
      AddNames(host, change.name, own ? kPlain : kWithKeyspace, &told.names);
    }
  }
}

void Tracking::SendBroadcasts(Host& host, Broadcasts* broadcasts) {
  for (const auto& [prefix_and_id, told] : *broadcasts) {
    Send(host, prefix_and_id.second, told.names, told.writer);
  }
  broadcasts->clear();
}

void Tracking::TellNames(Host& host, Session& session, const std::vector<ReadName>& names) {
  CELLAR_ASSERT(session.tracking != nullptr);
  Names told;
  for (const ReadName& read : names) AddNames(host, read.name, read.spellings, &told);
  if (!told.empty()) Send(host, session.id, told, {});
}

void Tracking::TellEverything(Host& host, const Session& session) {
  CELLAR_ASSERT(session.tracking != nullptr);
  Send(host, session.id, {}, {});
}

void Tracking::TellHeld(Host& host, Session& session) {
  CELLAR_ASSERT(session.tracking != nullptr);
  TrackingState& state = *session.tracking;
  size_t told = 0;
  for (; told < state.held.size(); ++told) {
    const TrackingState::Held& held = state.held[told];
    const PassedWrites::Answer own = state.passed.HasWritten(held.step_micros);
    const bool waits =
        own == PassedWrites::Answer::kUnknown && state.held_bytes <= TrackingState::kHeldBytesMax;
    if (waits) break;
    state.held_bytes -= BytesOf(held.names);
    if (own != PassedWrites::Answer::kYes) SendNow(host, session, held.names);
  }
  state.held.erase(state.held.begin(), state.held.begin() + static_cast<std::ptrdiff_t>(told));
}

void Tracking::Send(Host& host, uint64_t id, const Names& names, Writer writer) {
  Session* const session = host.FindSession(id);
  if (session == nullptr || session->ended() || !session->tracking) return;
  TrackingState& state = *session->tracking;
  if (state.noloop && id == writer.id) return;
  if (!state.noloop || writer.step_micros == 0) return SendNow(host, *session, names);
  // Behind what is held back already, if anything is.
  state.held_bytes += BytesOf(names);
  state.held.push_back({writer.step_micros, names});
  TellHeld(host, *session);
}

// To the client itself, or to the one that REDIRECT names: in RESP3 as a push, in RESP2 as a
// message, which only a subscribed one can get. It waits behind a gate like a reply, since it tells
// of a change.
void Tracking::SendNow(Host& host, Session& session, const Names& names) {
  TrackingState& state = *session.tracking;
  Session* target = &session;
  if (state.redirect != 0) {
    target = host.FindSession(state.redirect);
    if (target == nullptr || target->ended()) {
      state.broken_redirect = true;
      if (session.version == RespVersion::k2) return;
      const size_t bytes_before = session.reply_bytes();
      ReplyWriter broken(&PushTarget(session), session.version);
      broken.Push(2);
      broken.Bulk("tracking-redir-broken");
      broken.Integer(static_cast<int64_t>(state.redirect));
      return host.Pushed(session, session.reply_bytes() - bytes_before);
    }
  }
  const bool as_message = target->version == RespVersion::k2;
  // RESP2 knows no pushes: a client that is not subscribed to the channel cannot be told.
  if (as_message && (target == &session || !InSubscribedMode(*target))) return;
  GatePush(*target, host.store().last_lsn());
  const size_t bytes_before = target->reply_bytes();
  ReplyWriter push(&PushTarget(*target), target->version);
  push.Push(as_message ? 3 : 2);
  push.Bulk(as_message ? "message" : "invalidate");
  if (as_message) push.Bulk("__redis__:invalidate");
  if (names.empty()) {
    push.Null();
  } else {
    push.Array(names.size());
    for (const std::string& name : names) push.Bulk(name);
  }
  host.Pushed(*target, target->reply_bytes() - bytes_before);
}

}  // namespace cellar
