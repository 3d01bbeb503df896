// See type_part.h.
#include "store/type_part.h"

#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "store/cell_conversion.h"

namespace cellar {
namespace {

Result<const FamilySchema*> FamilyAgain(const Table& table, uint32_t id) {
  if (const FamilySchema* const family = table.schema().FindFamilyById(id)) return family;
  return Status::Error(ErrorCode::kNoFamily, "the family has been dropped");
}

// Finds the table again in each slice, and the family in it.
class PartBase : public TypePart {
 public:
  PartBase(Store& store, const Table& table, const FamilySchema& family, Request request)
      : store_(store),
        table_id_(table.id()),
        lineage_(store.lineage()),
        family_id_(family.id),
        request_(std::move(request)),
        hold_(table.HoldRows()) {}

  bool done() const final { return done_; }
  Status Step(uint64_t cells_max) final {
    CELLAR_ASSERT(!done_);
    Table* const table =
        store_.lineage() == lineage_ ? store_.engine().FindTableById(table_id_) : nullptr;
    if (table == nullptr) return Status::Error(ErrorCode::kNoTable, "the table has been dropped");
    ASSIGN_OR_RETURN(const FamilySchema* const family, FamilyAgain(*table, family_id_));
    ASSIGN_OR_RETURN(done_, StepOn(table, *family, cells_max));
    return Status::Ok();
  }

 protected:
  // True: that was all.
  virtual Result<bool> StepOn(Table* table, const FamilySchema& family, uint64_t cells_max) = 0;
  Store& store() { return store_; }
  const Request& request() const { return request_; }

 private:
  Store& store_;
  const uint64_t table_id_;
  const uint64_t lineage_;
  const uint32_t family_id_;
  const Request request_;
  const std::shared_ptr<void> hold_;
  bool done_{false};
};

// kLook and kSee.
class LookPart final : public PartBase {
 public:
  // Behind the alteration nobody puts a cell of another type: what has been looked at stays so.
  LookPart(Store& store, const Table& table, const FamilySchema& family, Request request)
      : PartBase(store, table, family, std::move(request)),
        look_(family.id,
              this->request().does == Does::kSee ? TypeLook::Asks::kAny
                                                 : AsksOf(this->request().options),
              this->request().does == Does::kSee ? TypeLook::Others::kWait
                                                 : TypeLook::Others::kWrite),
        table_(table.id()) {
    look_.Restrict(this->request().rows);
  }
  ~LookPart() override {
    Table* const table = store().engine().FindTableById(table_);
    if (table != nullptr) look_.EndRecord(*table);
  }
  LookPart(const LookPart&) = delete;
  LookPart& operator=(const LookPart&) = delete;

  FoundCells found() const override { return look_.found(); }
  size_t memory_bytes() const override { return look_.memory_bytes(); }

 private:
  Result<bool> StepOn(Table* table, const FamilySchema& family, uint64_t cells_max) override {
    FamilySchema after = family;
    if (request().does == Does::kLook)
      RETURN_IF_ERROR(AlterTypes(table->schema(), family, request().options, &after));
    const TypeChange change(after, request().options);
    if (change.Hash() != request().wanted) return ChangedMeanwhile(family);
    if (change_ && !change_->SameAs(change)) look_.Restart();
    change_ = change;
    if (!look_.Step(*table, after, change, store().now_micros(), cells_max)) return false;
    const Status refusal = look_.Refusal(after);
    if (!refusal.ok() && refusal.code() == ErrorCode::kTryAgain) return refusal;
    return true;
  }

  TypeLook look_;
  const uint64_t table_;
  std::optional<TypeChange> change_{};
};

class ConvertPart final : public PartBase {
 public:
  ConvertPart(Store& store, const Table& table, const FamilySchema& family, Request request,
              std::unique_ptr<FamilyAccess> rights)
      : PartBase(store, table, family, std::move(request)),
        rights_(std::move(rights)),
        conversion_(store, family.id, *this->request().options.other_cells, rights_.get()) {
    conversion_.Restrict(this->request().rows);
  }

  uint64_t rows() const override { return conversion_.rows_rewritten(); }
  FoundCells found() const override { return conversion_.stuck(); }
  size_t memory_bytes() const override { return conversion_.memory_bytes(); }

 private:
  Result<bool> StepOn(Table* table, const FamilySchema& family, uint64_t cells_max) override {
    const TypeChange change(family, request().options);
    if (change.Hash() != request().wanted) return CellConversion::ChangedAgain(family, rows());
    if (!conversion_.PrepareIndexes(table, cells_max)) return false;
    RETURN_IF_ERROR(conversion_.Step(table, family, change, cells_max));
    return conversion_.at_end();
  }

  const std::unique_ptr<FamilyAccess> rights_;
  CellConversion conversion_;
};

}  // namespace

Status TypePart::ChangedMeanwhile(const FamilySchema& family) {
  return Status::Error(ErrorCode::kTryAgain,
                       "the types of family " + Quote(family.name) + " have changed meanwhile");
}

Result<std::unique_ptr<TypePart>> TypePart::Make(Store& store, const Table& table, Request request,
                                                 std::unique_ptr<FamilyAccess> rights) {
  CELLAR_ASSERT(!store.in_transaction());
  const FamilySchema* const family = table.schema().FindFamily(request.family);
  if (family == nullptr) {
    return Status::Error(ErrorCode::kNoFamily,
                         "no family " + Quote(request.family) + " in table " + Quote(table.name()));
  }
  if (request.does == Does::kConvert) {
    return std::unique_ptr<TypePart>(std::make_unique<ConvertPart>(
        store, table, *family, std::move(request), std::move(rights)));
  }
  return std::unique_ptr<TypePart>(
      std::make_unique<LookPart>(store, table, *family, std::move(request)));
}

}  // namespace cellar
