// SetUsers: the users of a replica set. With cluster-acl they belong to the set and not to each of
// its nodes: ACL SETUSER and ACL DELUSER, at whatever node, change the record of its log that says
// who belongs to it (replica/set/set_members.h), and each node goes by the newest one that it has.
//
//   ACL SETUSER -> UsersTask (at the leader) -> SetNode::ChangeUsers -> log -> TakeOver (each node)
//
// What counts is what is committed: a change that is lost with its leader was in force nowhere.
// Until the first change the log names none, and each node goes by its configuration and aclfile.
// Where these name users, the leader takes its own in as soon as it leads; from then on files and
// requirepass count no more.
//
// A node that starts lets nobody in before it knows whether the log has users (Await): its files
// may let in whom the set has not. Other nodes it lets in by what its log has committed, however
// old, and else by its files; they run PEER and nothing else. A node that has not joined a set yet
// goes by its files; whom they have let in is looked at again when the set's users take their
// place.
#pragma once

#include <cstdint>
#include <string>

namespace cellar {

class Host;
struct CommandContext;
struct CommandEntry;

class SetUsers {
 public:
  // Whether users belong to a set: this node is a member of one, all of whose members know of that,
  // and cluster-acl says so.
  static bool AreOfSet(Host& host);
  // And its log names them.
  static bool AreLogged(Host& host);
  // Whether it is known here who there is: on behalf of nobody else another node is asked.
  static bool AreKnown(Host& host);
  // ACL SETUSER or ACL DELUSER.
  static bool IsChange(const CommandEntry& command);
  // The start, before anybody can connect: where a set may have users nobody is let in until
  // TakeOver knows.
  static void Await(Host& host);
  // At the end of a turn: what is committed in the log is what there is here. REQUIRES: a set.
  static void TakeOver(Host& host);
  // Now and then: a leader takes in the users that it has.
  static void Found(Host& host);

  // ACL SETUSER and ACL DELUSER of the users of a set.
  static void Set(CommandContext& ctx);
  static void Delete(CommandContext& ctx);

 private:
  // Whether who is connected stays so where its user is another one than it was.
  enum class Sessions : uint8_t { kKept, kJudged };
  static void Install(Host& host, const std::string& text, Sessions sessions);
};

}  // namespace cellar
