// See access_sampler.h.
#include "commands/dispatch/access_sampler.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "commands/catalog/command_keys.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "commands/session/session.h"
#include "commands/session/tracking.h"
#include "engine/schema/column_set.h"
#include "store/store.h"

namespace cellar {
namespace {

// As RESP sends them, where no argument is long.
size_t RequestBytes(Arguments args) {
  constexpr size_t kHeaderBytes{4};
  constexpr size_t kArgumentBytes{7};  // "$12\r\n", and "\r\n" behind it
  size_t bytes = kHeaderBytes;
  for (const std::string_view word : args) bytes += word.size() + kArgumentBytes;
  return bytes;
}

int64_t Micros(const timeval& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000 + time.tv_usec;
}

}  // namespace

HotKeys::Totals HotKeyTotals(const Services& services) {
  HotKeys::Totals totals;
  for (const auto& entry : services.commands.entries()) totals.command_nanos += entry->stats.nanos;
  totals.net_bytes = services.stats.input_bytes + services.stats.output_bytes;
  rusage usage{};
  (void)getrusage(RUSAGE_SELF, &usage);
  totals.user_micros = Micros(usage.ru_utime);
  totals.system_micros = Micros(usage.ru_stime);
  return totals;
}

void AccessSampler::Draw() {
  distance_ = left_ = std::min({heat_left_, hot_left_, load_left_});
  CELLAR_ASSERT(left_ > 0);
}

void AccessSampler::Restart() {
  Services& services = host_.services();
  // UINT64_MAX: never. All count down separately, and `left_` is what is left of the nearest one.
  heat_left_ = services.heat.enabled() ? services.heat.NextDistance() : UINT64_MAX;
  const uint64_t sample = services.hot_keys.options().sample;
  hot_left_ = services.hot_keys.active() ? 1 + services.heat.NextBelow(2 * sample - 1) : UINT64_MAX;
  if (!host_.routes()) {
    load_left_ = UINT64_MAX;
  } else if (load_left_ == UINT64_MAX) {
    services.load_samples.Restart(host_.clock().MonotonicMicros());
    DrawLoad();
  }
  Draw();
}

void AccessSampler::DrawLoad() {
  Services& services = host_.services();
  const uint64_t distance = services.load_samples.distance();
  load_left_ = 1 + services.heat.NextBelow(2 * distance - 1);
}

void AccessSampler::Look(const Session& session, const Access& access) {
  Services& services = host_.services();
  CELLAR_ASSERT(distance_ <= heat_left_);
  CELLAR_ASSERT(distance_ <= hot_left_);
  CELLAR_ASSERT(distance_ <= load_left_);
  // `distance_` commands have passed since the last look, for the one and for the other.
  if (heat_left_ != UINT64_MAX) heat_left_ -= distance_;
  if (hot_left_ != UINT64_MAX) hot_left_ -= distance_;
  if (load_left_ != UINT64_MAX) load_left_ -= distance_;
  if (heat_left_ == 0) {
    heat_left_ = services.heat.enabled() ? services.heat.NextDistance() : UINT64_MAX;
    if (!access.failed && services.heat.enabled()) CountHeat(session, access);
  }
  if (hot_left_ == 0) {
    Tick();
    const uint64_t sample = services.hot_keys.options().sample;
    hot_left_ =
        services.hot_keys.active() ? 1 + services.heat.NextBelow(2 * sample - 1) : UINT64_MAX;
    if (services.hot_keys.active()) CountHotKeys(session, access);
  }
  if (load_left_ == 0) {
    CountLoad(session, access);
    DrawLoad();
  }
  Draw();
}

void AccessSampler::Tick() {
  Services& services = host_.services();
  const int64_t now = host_.now_micros();
  if (!services.hot_keys.due(now)) return;
  services.hot_keys.Stop(services.hot_keys.EndMicros(), HotKeyTotals(services));
}

bool AccessSampler::FindRow(const Session& session, const Access& access, const Table** table,
                            std::string* key) const {
  const KeySpec& keys = access.command.row->keys;
  const auto row = static_cast<size_t>(keys.row);
  if (row == 0 || row >= access.args.size() || host_.loading()) return false;
  if (!access.command.Has(kWrite | kReadonly)) return false;
  *table =
      host_.store().FindTableIfAny(session.keyspace, access.args[static_cast<size_t>(keys.first)]);
  if (*table == nullptr || (*table)->frozen()) return false;
  const std::string_view text = access.args[row];
  key->clear();
  if (EncodeRowKey((*table)->schema(), text, key).ok()) return true;
  // `*` has made the row at the end.
  if (!(*table)->schema().key.is_recno() || text != "*") return false;
  key->clear();
  (*table)->schema().key.EncodeRecno(INT64_MAX, key);
  return true;
}

bool AccessSampler::FindPlace(uint64_t commands, LoadSamples::Row* row) const {
  const LoadSamples::Place& place = host_.services().load_samples.place();
  if (place.commands != commands || host_.loading()) return false;
  const Table* const table = host_.store().TableById(place.table_id);
  if (table == nullptr || table->frozen()) return false;
  // Of an entry the row.
  const std::string_view key = place.entry_key;
  const size_t row_bytes = key.empty() ? 0 : table->schema().key.EncodedSize(key);
  *row = {.table_id = table->id(),
          .key = row_bytes > 0 ? key.substr(0, row_bytes) : key,
          .is_whole = row_bytes > 0,
          .is_walk = true};
  return true;
}

// One that the store refuses costs as much as another one. It has been counted as finished.
void AccessSampler::CountLoad(const Session& session, const Access& access) {
  static thread_local std::string key;  // keeps its memory
  Services& services = host_.services();
  const Table* table = nullptr;
  LoadSamples::Row row;
  if (FindRow(session, access, &table, &key)) {
    row = {.table_id = table->id(), .key = key};
  } else if (access.in_slices || !FindPlace(services.stats.commands - 1, &row)) {
    return;
  }
  LoadSamples& samples = services.load_samples;
  // The distance is drawn by lot; what stands for those between is what it is on average.
  samples.Add(row, access.nanos, samples.distance(), host_.clock().MonotonicMicros());
}

// By lot, as long slices have more of it, whichever they are.
void AccessSampler::CountSlice(uint64_t nanos) {
  Services& services = host_.services();
  LoadSamples& samples = services.load_samples;
  LoadSamples::Row row;
  const bool found = FindPlace(services.stats.commands, &row);
  samples.ForgetPlace();
  if (!found) return;
  slice_nanos_ += nanos;
  if (slice_nanos_ < slice_nanos_next_) return;
  samples.Add(row, std::exchange(slice_nanos_, 0), 1, host_.clock().MonotonicMicros());
  slice_nanos_next_ = services.heat.NextBelow(2 * LoadSamples::kSliceNanos);
}

void AccessSampler::CountHeat(const Session& session, const Access& access) {
  static thread_local std::string key;  // keeps its memory
  const Table* table = nullptr;
  if (!FindRow(session, access, &table, &key)) return;
  const bool writes = access.command.Has(kWrite);
  HeatMap& heat = host_.services().heat;
  const auto weight = static_cast<double>(heat.sample());
  const auto bytes = static_cast<double>(RequestBytes(access.args) + access.reply_bytes);
  heat.Add(*table, key,
           {.reads = writes ? 0 : weight, .writes = writes ? weight : 0, .bytes = weight * bytes},
           host_.store().now_micros());
}

void AccessSampler::CountHotKeys(const Session& session, const Access& access) {
  if (host_.loading()) return;
  const KeySpec& spec = access.command.row->keys;
  const uint64_t bytes = RequestBytes(access.args) + access.reply_bytes;
  for (const size_t position : KeyPositions(spec, access.args)) {
    const Table* const table =
        host_.store().FindTableIfAny(session.keyspace, access.args[position]);
    if (table == nullptr) continue;
    const auto row = static_cast<size_t>(spec.row);
    const bool names_row = row > 0 && row < access.args.size();
    std::string name = TrackedName(*table, names_row ? &access.args[row] : nullptr);
    if (!name.empty()) host_.services().hot_keys.Add(name, access.nanos, bytes);
  }
}

}  // namespace cellar
