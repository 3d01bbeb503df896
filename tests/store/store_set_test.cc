// The store of a replica set's member: what comes is applied once it is committed; what was applied
// and is voided goes, with all that came behind it.
#include <catch2/catch.hpp>
#include <string>

#include "tests/store/set_member.h"

namespace cellar::store_set_test {

class Node final : public SetMember {
 public:
  void Make() {
    Result<Order> key = Order::Parse("bytes");
    REQUIRE(key.ok());
    REQUIRE(store->CreateTable("0", "t", *key, {{.name = "f", .options = {}}}).ok());
  }
  void Put(const std::string& row, const std::string& value) {
    Tick();
    RowWrite write;
    write.row = row;
    CellOp put;
    put.family = "f";
    put.qualifier = "q";
    put.text = value;
    write.ops.push_back(put);
    const auto done = store->Write(**store->FindTable("0", "t"), write);
    if (!done.ok()) FAIL(done.status().ToString());
  }
  void Commit(Lsn lsn) {
    const auto done = store->ApplyCommitted(lsn, INT64_MAX);
    REQUIRE(done.ok());
    CHECK(*done);
  }
};

TEST_CASE("A member applies what is committed, and has the rest in its log", "[store][set]") {
  Node one;
  Node two;
  one.Lead(1);
  one.Make();
  one.Put("a", "1");
  one.store->Flush();
  const Lsn committed = one.last();
  one.Put("b", "2");
  one.store->Flush();
  one.Send(two, 1);
  CHECK(two.last() == one.last());
  CHECK(two.store->applied_lsn() == Lsn{});
  CHECK(two.store->pending_bytes() > 0);
  CHECK_FALSE(two.store->FindTable("0", "t").ok());
  two.Commit(committed);
  CHECK(two.store->applied_lsn() == committed);
  REQUIRE(two.store->FindTable("0", "t").ok());
  CHECK(two.store->Digest() != one.store->Digest());
  two.Commit(one.last());
  CHECK(two.store->applied_lsn() == one.last());
  CHECK(two.store->pending_bytes() == 0);
  CHECK(two.store->Digest() == one.store->Digest());
  // One record at a time, where the time is up.
  one.Put("c", "3");
  one.store->Flush();
  one.Put("d", "4");
  one.Send(two, two.last().seq + 1);
  CHECK_FALSE(*two.store->ApplyCommitted(one.last(), 0));
  CHECK(*two.store->ApplyCommitted(one.last(), 0));
  CHECK(two.store->Digest() == one.store->Digest());
}

TEST_CASE("A deposed leader whose changes are voided makes its state anew", "[store][set]") {
  Node one;
  Node two;
  one.Lead(1);
  one.Make();
  one.Put("a", "1");
  one.Send(two, 1);
  const Lsn committed = one.last();
  two.Commit(committed);
  // One writes what nobody gets, and Two leads.
  one.Put("a", "lost");
  one.Put("z", "lost");
  one.store->Flush();
  two.clock.now_micros += 5;
  two.Lead(2);
  two.Put("a", "2");
  two.Put("b", "2");
  const std::string digest = two.store->Digest();
  one.Follow();
  CHECK_FALSE(one.store->state_is_void());
  two.Send(one, committed.seq + 1);
  CHECK(one.store->state_is_void());
  CHECK(one.last() == two.last());
  // Nothing more is done to a state that is none.
  REQUIRE(*one.store->ApplyCommitted(two.last(), INT64_MAX));
  REQUIRE(one.store->ReloadCommitted(committed).ok());
  one.store->journal().SetSink(&one);
  CHECK_FALSE(one.store->state_is_void());
  CHECK(one.store->applied_lsn() == committed);
  CHECK(one.last() == two.last());
  one.Commit(two.last());
  CHECK(one.store->Digest() == digest);
  CHECK(one.store->applied_lsn() == two.last());
  // It goes on, and is found again.
  two.Put("c", "3");
  two.Send(one, one.last().seq + 1);
  one.Commit(two.last());
  CHECK(one.store->Digest() == two.store->Digest());
  REQUIRE(one.store->ReloadCommitted(two.last()).ok());
  CHECK(one.store->Digest() == two.store->Digest());
  CHECK(one.store->pending_bytes() == 0);
  one.Open();
  CHECK(one.store->Digest() == two.store->Digest());
}

TEST_CASE("Voided records that were not applied only leave the queue", "[store][set]") {
  Node one;
  Node two;
  Node three;
  one.Lead(1);
  one.Make();
  one.Put("a", "1");
  one.Send(two, 1);
  one.Send(three, 1);
  const Lsn committed = one.last();
  two.Commit(committed);
  three.Commit(committed);
  one.Put("b", "lost");
  one.Send(two, committed.seq + 1);
  three.clock.now_micros += 5;
  three.Lead(2);
  three.Put("b", "2");
  three.Send(two, committed.seq + 1);
  CHECK_FALSE(two.store->state_is_void());
  CHECK(two.store->applied_lsn() == committed);
  two.Commit(three.last());
  CHECK(two.store->Digest() == three.store->Digest());
  // A restart finds the same, as far as a mark tells.
  two.Open();
  CHECK(two.store->applied_lsn() == Lsn{});
  two.Commit(three.last());
  CHECK(two.store->Digest() == three.store->Digest());
}

}  // namespace cellar::store_set_test
