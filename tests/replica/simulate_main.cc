// Runs schedules of the simulation (simulation.h) from the command line:
//
//   simulate [--seed FROM] [--schedules N] [--nodes 3|5] [--members] [--witnesses N] [--slow-links]
//            [--copies] [--damage PERCENT] [--trace] [--seconds S] [--fault NAME]
//
// Ends at the first violation, with its seed, and status 3.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/replica/simulation.h"

namespace {

bool SetFault(const std::string& name, cellar::SimFaults* faults) {
  const std::pair<const char*, bool*> known[] = {
      {"counts-old-terms", &faults->set.counts_old_terms},
      {"long-lease", &faults->set.long_lease},
      {"no-divide", &faults->set.no_divide},
      {"no-barrier", &faults->set.no_barrier},
      {"no-vote-pause", &faults->set.no_vote_pause},
      {"no-told-term", &faults->set.no_told_term},
      {"no-vote-of-strangers", &faults->set.no_vote_of_strangers},
      {"no-forgotten-leader", &faults->set.no_forgotten_leader},
      {"no-new-term", &faults->set.no_new_term},
      {"refuses-while-installing", &faults->set.refuses_while_installing},
      {"deaf-to-arriving", &faults->set.deaf_to_arriving},
      {"repeats-long", &faults->set.repeats_long},
      {"no-order", &faults->set.no_order},
      {"no-quorum-check", &faults->set.no_quorum_check},
      {"changes-together", &faults->set.changes_together},
      {"no-cut", &faults->set.no_cut},
      {"no-rollback", &faults->no_rollback},
      {"replies-before-commit", &faults->replies_before_commit},
      {"vote-not-synced", &faults->vote_not_synced},
      {"wiped-node-votes", &faults->wiped_node_votes},
      {"early-snapshot", &faults->early_snapshot},
      {"witness-offers", &faults->witness_offers},
      {"witness-stays", &faults->witness_stays},
      {"trusts-copies", &faults->trusts_copies},
      {"any-term", &faults->set.any_term},
      {"keeps-match", &faults->set.keeps_match},
      {"one-leader", &faults->set.one_leader},
      {"one-contradiction", &faults->set.one_contradiction},
      {"one-offer", &faults->set.one_offer},
      {"one-time", &faults->set.one_time},
      {"untold-time", &faults->set.untold_time},
      {"one-greeting", &faults->one_greeting},
      {"any-ack", &faults->set.any_ack},
      {"any-echo", &faults->set.any_echo},
  };
  for (const auto& [word, flag] : known) {
    if (name != word) continue;
    *flag = true;
    return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  cellar::SimOptions options;
  uint64_t from = 1;
  uint64_t schedules = 100;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--members") {
      options.members = true;
      options.nodes = 5;
      continue;
    }
    if (word == "--trace") {
      options.trace = true;
      continue;
    }
    if (word == "--copies") {
      options.copies = true;
      continue;
    }
    if (word == "--slow-links") {
      options.link_bytes = cellar::kLongFrameBytes / 500;
      continue;
    }
    ++i;
    if (word == "--seed") {
      from = std::strtoull(value, nullptr, 10);
    } else if (word == "--schedules") {
      schedules = std::strtoull(value, nullptr, 10);
    } else if (word == "--nodes") {
      options.nodes = static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
    } else if (word == "--witnesses") {
      options.witnesses = static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
    } else if (word == "--damage") {
      options.damage = std::strtod(value, nullptr) / 100;
    } else if (word == "--seconds") {
      options.micros = std::strtoll(value, nullptr, 10) * 1'000'000;
    } else if (word != "--fault" || !SetFault(value, &options.faults)) {
      std::fprintf(stderr, "simulate: what is %s %s?\n", word.c_str(), value);
      return 2;
    }
  }
  if (raft_core_available() == 0) {
    std::puts("simulate: built without libraft (make deps)");
    return 0;
  }
  cellar::Simulation simulation(options);
  for (uint64_t seed = from; seed < from + schedules; ++seed) {
    try {
      simulation.Run(seed);
    } catch (const cellar::Violation& violation) {
      std::printf("VIOLATION %s\n", violation.what.c_str());
      return 3;
    }
  }
  std::printf("%llu schedules from seed %llu, %u nodes, %u witnesses%s: no violation\n",
              static_cast<unsigned long long>(schedules), static_cast<unsigned long long>(from),
              options.nodes, options.witnesses, options.members ? ", members change" : "");
  const cellar::SimStats& s = simulation.stats;
  const std::pair<const char*, uint64_t> counts[] = {
      {"acknowledged", s.acknowledged},
      {"committed", s.committed},
      {"lease reads", s.reads},
      {"elections", s.elections},
      {"voids", s.voids},
      {"reloads", s.reloads},
      {"installs", s.installs},
      {"given up", s.installs_failed},
      {"snapshots", s.snapshots},
      {"kills", s.crashes},
      {"power losses", s.power_losses},
      {"torn tails", s.torn_tails},
      {"cuts", s.cuts},
      {"pauses", s.pauses},
      {"transfers", s.transfers},
      {"witnesses stepped aside", s.asides},
      {"votes unsaved", s.votes_unsaved},
      {"member changes", s.changes},
      {"disks lost", s.wipes},
      {"frames", s.frames},
      {"long ones", s.long_frames},
      {"damaged", s.damaged},
      {"links closed", s.links_closed},
      {"contradicted", s.contradicted},
      {"older copies", s.older},
      {"refused", s.refused},
      {"accepted", s.copies_accepted},
  };
  for (const auto& [name, count] : counts)
    std::printf("  %s %llu", name, static_cast<unsigned long long>(count));
  std::puts("");
  return 0;
}
