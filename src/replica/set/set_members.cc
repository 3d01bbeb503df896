// See set_members.h.
#include "replica/set/set_members.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "base/coding.h"
#include "replica/links/frame.h"

namespace cellar {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kVersionWithUsers = 2;

}  // namespace

const SetMember* SetMembers::Find(uint64_t id) const {
  for (const SetMember& member : list) {
    if (member.id == id) return &member;
  }
  return nullptr;
}

SetMembers::Voters SetMembers::CountVoters() const {
  Voters voters;
  for (const SetMember& member : list) {
    if (member.kind == MemberKind::kVoter) ++voters.with_data;
    if (member.kind == MemberKind::kWitness) ++voters.witnesses;
  }
  return voters;
}

std::string UnfitVoters(const SetMembers::Voters& voters) {
  return fmt::format(
      "a set needs fewer witnesses than voters with data, and that would be {} and {}",
      voters.witnesses, voters.with_data);
}

std::string EncodeMembers(const SetMembers& members) {
  CELLAR_ASSERT(members.list.size() <= kSetMembersMax);
  CELLAR_ASSERT(members.users.size() <= kSetUsersBytesMax);
  const uint8_t version = members.users.empty() ? kVersion : kVersionWithUsers;
  std::string payload(1, static_cast<char>(version));
  PutFixed32(&payload, members.feature_level);
  PutFixed64(&payload, members.index);
  PutFixed32(&payload, static_cast<uint32_t>(members.list.size()));
  for (const SetMember& member : members.list) {
    PutFixed64(&payload, member.id);
    payload.push_back(static_cast<char>(member.kind));
    PutFixed<uint16_t>(&payload, member.port);
    PutLengthPrefixed(&payload, member.host);
  }
  if (!members.users.empty()) PutLengthPrefixed(&payload, members.users);
  return payload;
}

bool DecodeMembers(std::string_view payload, SetMembers* members) {
  BodyReader body(payload);
  const uint8_t version = body.Byte();
  if (version != kVersion && version != kVersionWithUsers) return false;
  SetMembers read;
  read.feature_level = body.U32();
  read.index = body.U64();
  const uint32_t count = body.U32();
  if (!body.ok() || count > kSetMembersMax) return false;
  for (uint32_t i = 0; i < count; ++i) {
    SetMember member;
    member.id = body.U64();
    const uint8_t kind = body.Byte();
    member.port = body.U16();
    member.host = body.Prefixed();
    if (!body.ok() || member.id == 0 || kind > static_cast<uint8_t>(MemberKind::kStandby) ||
        read.Find(member.id) != nullptr)
      return false;
    member.kind = static_cast<MemberKind>(kind);
    read.list.push_back(std::move(member));
  }
  if (version == kVersionWithUsers) {
    read.users = body.Prefixed();
    if (!body.ok() || read.users.empty() || read.users.size() > kSetUsersBytesMax) return false;
  }
  if (!body.Rest().empty()) return false;
  *members = std::move(read);
  return true;
}

}  // namespace cellar
