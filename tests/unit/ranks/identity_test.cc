// SPDX-License-Identifier: Apache-2.0
#include "ranks/identity.h"

#include <fstream>
#include <map>

#include <gtest/gtest.h>

namespace pushrod::ranks {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Rank> rankFrom(const Variables& variables) {
  return rankFromEnvironment([&variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

struct Accepted {
  Variables variables;
  int rank;
  int size;
  int localRank;
  std::string source;
};

TEST(IdentityTest, LaunchersAreRead) {
  const std::vector<Accepted> cases = {
      {{}, 0, 1, 0, "none"},
      {{{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}, 3, 8, 1, "torchrun"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, 0, 1, 0, "torchrun"},
      {{{"OMPI_COMM_WORLD_RANK", "2"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}},
       2,
       4,
       2,
       "open_mpi"},
      {{{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}, {"SLURM_LOCALID", "1"}}, 5, 6, 1, "slurm"},
      // The step's size, not the allocation's.
      {{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "16"}, {"SLURM_STEP_NUM_TASKS", "2"}},
       1,
       2,
       0,
       "slurm"},
      // A shell inside an allocation is no rank.
      {{{"SLURM_NTASKS", "16"}}, 0, 1, 0, "none"},
      {{{"LOCAL_RANK", "3"}}, 0, 1, 0, "none"},
      // torchrun before Open MPI before Slurm.
      {{{"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_RANK", "0"},
        {"OMPI_COMM_WORLD_SIZE", "1"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "1"}},
       1,
       2,
       0,
       "torchrun"},
      {{{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "3"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "1"}},
       1,
       3,
       0,
       "open_mpi"},
  };
  for (const Accepted& each : cases) {
    const auto rank = rankFrom(each.variables);
    ASSERT_TRUE(rank) << rank.status().toString();
    EXPECT_EQ(rank->rank, each.rank) << each.source;
    EXPECT_EQ(rank->size, each.size) << each.source;
    EXPECT_EQ(rank->localRank, each.localRank) << each.source;
    EXPECT_EQ(rank->source, each.source);
  }
}

struct Refused {
  Variables variables;
  std::string name;  ///< must be in the message
};

TEST(IdentityTest, BadValuesAreRefusedByName) {
  const std::vector<Refused> cases = {
      {{{"RANK", ""}, {"WORLD_SIZE", "8"}}, "RANK"},
      {{{"RANK", "0"}, {"WORLD_SIZE", ""}}, "WORLD_SIZE"},
      {{{"RANK", "0"}}, "WORLD_SIZE is not"},
      {{{"WORLD_SIZE", "4"}}, "RANK is not"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "4"}}, "'-1'"},
      {{{"RANK", "+1"}, {"WORLD_SIZE", "4"}}, "'+1'"},
      {{{"RANK", "1 "}, {"WORLD_SIZE", "4"}}, "'1 '"},
      {{{"RANK", "01"}, {"WORLD_SIZE", "4"}}, "'01'"},
      {{{"RANK", "1.0"}, {"WORLD_SIZE", "4"}}, "'1.0'"},
      {{{"RANK", "0x1"}, {"WORLD_SIZE", "4"}}, "'0x1'"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "99999999999"}}, "WORLD_SIZE"},
      {{{"RANK", "4"}, {"WORLD_SIZE", "4"}}, "RANK is 4"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE is 0"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", ""}}, "LOCAL_RANK"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}}, "LOCAL_RANK"},
      {{{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, "OMPI_COMM_WORLD_RANK"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}}, "OMPI_COMM_WORLD_RANK is not"},
      {{{"SLURM_PROCID", "0"}}, "SLURM_STEP_NUM_TASKS is not"},
      {{{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}},
       "SLURM_STEP_NUM_TASKS is 2"},
      // A believed launcher's fault is not papered over by the next one.
      {{{"RANK", ""}, {"WORLD_SIZE", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, "RANK"},
  };
  for (const Refused& each : cases) {
    const auto rank = rankFrom(each.variables);
    ASSERT_FALSE(rank) << each.name;
    EXPECT_EQ(rank.status().code(), Code::kInvalidArgument);
    EXPECT_NE(rank.status().message().find(each.name), std::string::npos)
        << rank.status().message();
  }
}

TEST(IdentityTest, ArgumentsAreChecked) {
  const auto rank = Rank::of(1, 2);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->source, "arguments");
  EXPECT_FALSE(Rank::of(2, 2));
  EXPECT_FALSE(Rank::of(-1, 2));
  EXPECT_FALSE(Rank::of(0, 0));
}

TEST(IdentityTest, HostIdIsTheVariableElseTheMachines) {
  const auto hostOf = [](const std::optional<std::string>& value) {
    return hostIdFromEnvironment([&value](const std::string& name) {
      return name == "PUSHROD_HOST_ID" ? value : std::nullopt;
    });
  };
  EXPECT_EQ(hostOf("node-7").value(), "node-7");
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string machine;
  file >> machine;
  EXPECT_EQ(hostOf(std::nullopt).value(), machine);
  for (const std::string& odd :
       {std::string(), std::string("two words"), std::string("line\n"), std::string(129, 'x')}) {
    const auto refused = hostOf(odd);
    ASSERT_FALSE(refused) << odd;
    EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
    EXPECT_NE(refused.status().message().find("PUSHROD_HOST_ID"), std::string::npos);
  }
}

}  // namespace
}  // namespace pushrod::ranks
