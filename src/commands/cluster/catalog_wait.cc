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
  explicit CatalogWait(Host& host) : wait_(host) {}

  TaskProgress Step(TaskContext& context) override {
    context.depends_on = wait_.record();
    switch (wait_.Look()) {
      case OtherSetsWait::State::kAllHave:
        context.reply.Ok();
        return TaskProgress::kDone;
      case OtherSetsWait::State::kWaits:
        if (!context.budget.unlimited()) return TaskProgress::kWaiting;
        break;
      case OtherSetsWait::State::kLacks:
        break;
    }
    context.Fail(wait_.LacksText());
    return TaskProgress::kDone;
  }

 private:
  OtherSetsWait wait_;
};

}  // namespace

OtherSetsWait::OtherSetsWait(Host& host)
    : host_(host),
      catalog_(host.store().engine().cluster().catalog),
      record_(host.store().schema_lsn()),
      deadline_micros_(host.clock().MonotonicMicros() + kPatienceMicros) {}

OtherSetsWait::State OtherSetsWait::Look() const {
  const DirectorDesk* const director = host_.services().director;
  if (director != nullptr && !director->WhoLacks(catalog_)) return State::kAllHave;
  return host_.clock().MonotonicMicros() < deadline_micros_ ? State::kWaits : State::kLacks;
}

std::string OtherSetsWait::LacksText() const {
  const DirectorDesk* const director = host_.services().director;
  return fmt::format("TRYAGAIN schema change {} is logged; set {} has not taken it yet", catalog_,
                     director == nullptr ? 0 : director->WhoLacks(catalog_).value_or(0));
}

bool AwaitOtherSets(CommandContext& ctx) {
  Services& services = ctx.host.services();
  if (!services.cluster_map.has_others() || services.director == nullptr ||
      ctx.session.exec_running || !ClusterPart::Directs(ctx.host))
    return false;
  ClusterPart::Tend(ctx.host);
  ctx.Continue(std::make_unique<CatalogWait>(ctx.host));
  return true;
}

}  // namespace cellar
