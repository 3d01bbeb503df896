// Splitting keys into components, and bounds out of parts of keys.
//
// One walk serves complete keys, bounds and prefixes: EncodeComponents goes through the text, cuts
// at delimiters and encodes; what differs is only what may be missing at the end.
#include "engine/keys/order.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/coding.h"
#include "base/copy_bytes.h"
#include "base/text/quote.h"
#include "engine/keys/key_component.h"
#include "engine/keys/time_uuid.h"

namespace cellar {
namespace {

constexpr std::string_view kDelimiters{"#/|:,;~."};
constexpr size_t kSpecBytesMax{4096};
constexpr size_t kComponentNameBytesMax{64};  // as of names of families

Status BadSpec(std::string_view spec, std::string why) {
  return Status::Error(ErrorCode::kErr, "invalid order " + Quote(spec) + ": " + std::move(why));
}

// As names of families, but for the dot, which divides components.
bool IsComponentName(std::string_view name) {
  const auto is_first = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= kComponentNameBytesMax && is_first(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_first(c) || c == '-'; });
}

Status BadComponent(OrderComponent component, size_t number, std::string_view text,
                    std::string_view why) {
  std::string complaint = "component " + std::to_string(number) + " (";
  if (component.descending) complaint.push_back('-');
  complaint.append(ComponentTypeName(component.type)).append("): ");
  complaint.append(Quote(text)).append(" ").append(why);
  return Status::Error(ErrorCode::kBadKey, std::move(complaint));
}

}  // namespace

KeyBound Successor(std::string_view prefix) {
  KeyBound bound;
  AssignSuccessor(prefix, &bound);
  return bound;
}

void AssignSuccessor(std::string_view prefix, KeyBound* bound) {
  size_t size = prefix.size();
  while (size > 0 && static_cast<uint8_t>(prefix[size - 1]) == 0xff) --size;
  bound->bytes.assign(prefix.substr(0, size));
  bound->at_end = size == 0;
  if (size == 0) return;
  bound->bytes.back() = static_cast<char>(static_cast<uint8_t>(bound->bytes.back()) + 1);
}

KeyRange PrefixRange(std::string_view prefix) {
  return {{std::string(prefix), false}, Successor(prefix)};
}

KeyRange RangeBehind(std::string_view front, const KeyRange& range) {
  if (range.begin.at_end) return {{}, KeyBound{}};
  KeyRange behind{{std::string(front) + range.begin.bytes, false}, Successor(front)};
  if (!range.end.at_end) behind.end = KeyBound{std::string(front) + range.end.bytes, false};
  return behind;
}

Order::Order() : components_(1), spec_("bytes") {}

Order Order::FromComponents(std::vector<OrderComponent> components, char delimiter) {
  return Make(std::move(components), {}, delimiter);
}

Order Order::Make(std::vector<OrderComponent> components, std::vector<std::string> names,
                  char delimiter) {
  CELLAR_ASSERT(names.empty() || names.size() == components.size());
  CELLAR_ASSERT(!components.empty());
  CELLAR_ASSERT(components.size() <= kOrderComponentsMax);
  CELLAR_ASSERT((components.size() == 1) == (delimiter == '\0'));
  Order order;
  order.spec_.clear();
  for (size_t i = 0; i < components.size(); ++i) {
    const OrderComponent component = components[i];
    if (i > 0) order.spec_.push_back(delimiter);
    if (component.descending) order.spec_.push_back('-');
    if (!names.empty() && !names[i].empty()) order.spec_.append(names[i]).push_back('=');
    order.spec_.append(ComponentTypeName(component.type));
  }
  const OrderComponent first = components.front();
  order.delimiter_ = delimiter;
  order.is_plain_bytes_ = components.size() == 1 && first == OrderComponent{};
  order.is_recno_ = components.size() == 1 && first.type == ComponentType::kRecno;
  size_t texts_and_before = components.size();
  for (; texts_and_before > 0; --texts_and_before) {
    const OrderComponent component = components[texts_and_before - 1];
    if (IsTextComponent(component.type)) break;
    constexpr char kNumber[16]{};  // as long as the longest
    order.fixed_tail_bytes_ +=
        static_cast<uint32_t>(ComponentSize(component, {kNumber, sizeof(kNumber)}));
  }
  order.is_fixed_ = texts_and_before == 0;
  order.components_ = std::move(components);
  order.names_ = std::move(names);
  return order;
}

size_t Order::FindName(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (name.empty() || found == names_.end()) return components_.size();
  return static_cast<size_t>(found - names_.begin());
}

Result<Order> Order::Parse(std::string_view spec) { return ParseSpec(spec, Names::kNo); }

Result<Order> Order::ParseKey(std::string_view spec) { return ParseSpec(spec, Names::kYes); }

// Takes `name=` from the front of *component, if there is one.
static Status TakeName(std::string_view spec, std::vector<std::string>* names,
                       std::string_view* component) {
  const size_t equals = component->find('=');
  names->emplace_back();
  if (equals == std::string_view::npos) return Status::Ok();
  const std::string_view name = component->substr(0, equals);
  component->remove_prefix(equals + 1);
  if (!IsComponentName(name)) {
    return BadSpec(spec, Quote(name) +
                             " is no name of a component: 1 to 64 characters of A-Z a-z "
                             "0-9 _ -, the first one not -");
  }
  if (std::find(names->begin(), names->end(), name) != names->end()) {
    return BadSpec(spec, "two components have the name " + Quote(name));
  }
  names->back() = name;
  return Status::Ok();
}

// The first delimiter in the spec is the one for all components. Names, as in `user=utf8`, are for
// row keys alone, and the list of them stays empty if no component has one.
Result<Order> Order::ParseSpec(std::string_view spec, Names wanted) {
  if (spec.size() > kSpecBytesMax) return BadSpec(spec, "too long");
  const size_t first_delimiter = spec.find_first_of(kDelimiters);
  const char delimiter = first_delimiter == std::string_view::npos ? '\0' : spec[first_delimiter];
  std::vector<OrderComponent> components;
  std::vector<std::string> names;
  std::string_view rest = spec;
  for (bool more = true; more;) {
    const size_t end = delimiter == '\0' ? std::string_view::npos : rest.find(delimiter);
    std::string_view name = rest.substr(0, end);
    more = end != std::string_view::npos;
    if (more) rest.remove_prefix(end + 1);
    OrderComponent component;
    if (name.starts_with('-')) {
      component.descending = true;
      name.remove_prefix(1);
    }
    if (name.find_first_of(kDelimiters) != std::string_view::npos) {
      return BadSpec(spec, "more than one kind of delimiter");
    }
    if (wanted == Names::kYes) {
      RETURN_IF_ERROR(TakeName(spec, &names, &name));
    } else if (name.find('=') != std::string_view::npos) {
      return BadSpec(spec, "only components of row keys (KEY) have names");
    }
    if (!ParseComponentType(name, &component.type)) {
      return BadSpec(spec,
                     "no such component " + Quote(name) + ", there are " + ComponentTypeNames());
    }
    if (delimiter == '.' && IsFloatComponent(component.type)) {
      return BadSpec(spec, "a float component cannot have the delimiter .");
    }
    if (component.type == ComponentType::kRecno && spec.size() != name.size()) {
      return BadSpec(spec, "recno stands alone: no other component, no name, no minus");
    }
    components.push_back(component);
    if (components.size() > kOrderComponentsMax) return BadSpec(spec, "too many components");
  }
  const bool named = std::any_of(names.begin(), names.end(),
                                 [](const std::string& name) { return !name.empty(); });
  if (!named) names.clear();
  return Make(std::move(components), std::move(names), delimiter);
}

Status Order::EncodeComponents(std::string_view text, Extent extent, std::string* out) const {
  std::string_view rest = text;
  for (size_t i = 0; i < components_.size(); ++i) {
    const OrderComponent component = components_[i];
    const bool is_last = i + 1 == components_.size();
    const size_t end = is_last ? std::string_view::npos : rest.find(delimiter_);
    const bool closed = end != std::string_view::npos;  // a delimiter follows
    const std::string_view part = rest.substr(0, end);
    std::string_view why;
    if (!closed && extent == Extent::kPrefix) {
      if (part.empty()) return Status::Ok();  // whole components so far
      if (IsTextComponent(component.type)) {
        const bool fits = EncodeComponentPrefix(component, part, out, &why);
        return fits ? Status::Ok() : BadComponent(component, i + 1, part, why);
      }
    }
    if (!EncodeComponent(component, part, out, &why)) {
      return BadComponent(component, i + 1, part, std::string(why) + Hint(text, i, extent));
    }
    if (is_last || (!closed && extent != Extent::kWhole)) return Status::Ok();
    if (!closed) {
      return BadComponent(components_[i + 1], i + 2, text, "ends before it");
    }
    rest.remove_prefix(end + 1);
  }
  return Status::Ok();
}

// What may have been meant where component `at` cannot be read.
std::string Order::Hint(std::string_view text, size_t at, Extent extent) const {
  CELLAR_ASSERT(at < components_.size());
  const auto delimiters = static_cast<size_t>(std::count(text.begin(), text.end(), delimiter_));
  const bool follows_text =
      std::any_of(components_.begin(), components_.begin() + static_cast<ptrdiff_t>(at),
                  [](const OrderComponent& component) { return IsTextComponent(component.type); });
  if (follows_text && delimiters >= components_.size()) {
    return std::string(": a text component before the last cannot hold the delimiter '") +
           delimiter_ + "', an order may have another one of " + std::string(kDelimiters);
  }
  if (extent == Extent::kPrefix && !IsTextComponent(components_[at].type)) {
    return ": a prefix ends inside a text or behind a whole component";
  }
  return {};
}

Status Order::EncodeAny(std::string_view text, char* to, size_t* bytes) const {
  std::string encoded;
  RETURN_IF_ERROR(Encode(text, &encoded));
  CELLAR_ASSERT(encoded.size() <= EncodedBytesMax(text.size()));
  CopyBytes(to, encoded.data(), encoded.size());
  *bytes = encoded.size();
  return Status::Ok();
}

bool Order::Decode(std::string_view encoded, std::string* text) const {
  std::string_view rest = encoded;
  for (size_t i = 0; i < components_.size(); ++i) {
    const size_t size = ComponentSize(components_[i], rest);
    if (size == 0) return false;
    if (i > 0) text->push_back(delimiter_);
    if (!DecodeComponent(components_[i], rest.substr(0, size), text)) return false;
    rest.remove_prefix(size);
  }
  return rest.empty();
}

size_t Order::EscapedBytesSize(std::string_view at_front) {
  return ComponentSize(OrderComponent{}, at_front);
}

std::string_view Order::DecodedText(std::string_view encoded, std::string* scratch) const {
  scratch->clear();
  const bool decoded = Decode(encoded, scratch);
  CELLAR_ASSERT(decoded);
  return *scratch;
}

size_t Order::ComponentsSize(std::string_view at_front, size_t count) const {
  CELLAR_ASSERT(count <= components_.size());
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = ComponentSize(components_[i], at_front.substr(total));
    if (size == 0) return 0;
    total += size;
  }
  return total;
}

Result<KeyBound> Order::EncodeBound(std::string_view text, BoundEdge edge, BoundSide side) const {
  KeyBound bound;
  Status encoded = EncodeComponents(text, Extent::kFirstComponents, &bound.bytes);
  if (!encoded.ok()) {
    std::string expanded;
    if (!ExpandTimes(*this, text, &expanded)) return encoded;
    bound.bytes.clear();
    RETURN_IF_ERROR(EncodeComponents(expanded, Extent::kFirstComponents, &bound.bytes));
  }
  const bool begins_before = (edge == BoundEdge::kInclusive) == (side == BoundSide::kMin);
  if (begins_before) return bound;
  return Successor(bound.bytes);
}

Result<KeyRange> Order::EncodePrefix(std::string_view text) const {
  if (text.empty()) return KeyRange{};
  std::string prefix;
  RETURN_IF_ERROR(EncodeComponents(text, Extent::kPrefix, &prefix));
  return PrefixRange(prefix);
}

void Order::EncodeRecno(int64_t number, std::string* out) const {
  CELLAR_ASSERT(is_recno_);
  CELLAR_ASSERT(number >= 1);
  ValueBuffer buffer;
  const std::string_view stored = StoreInteger(ValueType::kI64, number, &buffer);
  EncodeComponentValue(components_.front(), ValueType::kI64, stored, out);
}

int64_t Order::DecodeRecno(std::string_view encoded) const {
  CELLAR_ASSERT(is_recno_);
  std::string stored;
  const bool decoded = DecodeComponentValue(components_.front(), ValueType::kI64, encoded, &stored);
  CELLAR_ASSERT(decoded);
  return static_cast<int64_t>(LoadInteger(ValueType::kI64, stored));
}

}  // namespace cellar
