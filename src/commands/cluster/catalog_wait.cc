// See catalog_wait.h.
#include "commands/cluster/catalog_wait.h"

#include <fmt/format.h>

#include <memory>

#include "commands/cluster/cluster_part.h"
#include "commands/session/command_context.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "commands/session/task.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr int64_t kPatienceMicros{10'000'000};

class CatalogWait final : public Task {
 public:
  CatalogWait(Host& host, uint64_t catalog, Lsn record, int64_t deadline_micros)
      : host_(host), catalog_(catalog), record_(record), deadline_micros_(deadline_micros) {}

  TaskProgress Step(TaskContext& context) override {
    context.depends_on = record_;
    const auto lacks = host_.services().director->WhoLacks(catalog_);
    if (!lacks) {
      context.reply.Ok();
      return TaskProgress::kDone;
    }
    if (context.now_micros < deadline_micros_ && !context.budget.unlimited())
      return TaskProgress::kWaiting;
    context.Fail(fmt::format("TRYAGAIN schema change {} is logged; set {} has not taken it yet",
                             catalog_, *lacks));
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
  const uint64_t catalog_;
  const Lsn record_;
  const int64_t deadline_micros_;
};

}  // namespace

bool AwaitOtherSets(CommandContext& ctx) {
  Services& services = ctx.host.services();
  if (!services.cluster_map.has_others() || services.director == nullptr ||
      ctx.session.exec_running || !ClusterPart::Directs(ctx.host))
    return false;
  ClusterPart::Tend(ctx.host);
  ctx.Continue(std::make_unique<CatalogWait>(ctx.host, ctx.store().engine().cluster().catalog,
                                             ctx.store().schema_lsn(),
                                             ctx.now_micros + kPatienceMicros));
  return true;
}

}  // namespace cellar
