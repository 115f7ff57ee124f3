// SPDX-License-Identifier: Apache-2.0
#include "ranks/identity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "common/host_id.h"

namespace pushrod::ranks {

namespace {

/// The variables of one launcher. `sizes` in order of belief.
struct Launcher {
  const char* source;
  const char* rank;
  std::array<const char*, 2> sizes;
  const char* localRank;
  bool sizeAloneCounts;  ///< a size without a rank is a fault, not another launcher's left-over
};

// Slurm's SLURM_NTASKS may be that of the allocation; the step's own count is believed first. An
// allocation's shell has SLURM_NTASKS without SLURM_PROCID and is no rank.
constexpr std::array<Launcher, 3> kLaunchers = {{
    {"torchrun", "RANK", {"WORLD_SIZE", nullptr}, "LOCAL_RANK", true},
    {"open_mpi",
     "OMPI_COMM_WORLD_RANK",
     {"OMPI_COMM_WORLD_SIZE", nullptr},
     "OMPI_COMM_WORLD_LOCAL_RANK",
     true},
    {"slurm", "SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, "SLURM_LOCALID", false},
}};

Status refused(const std::string& what) {
  return Status(Code::kInvalidArgument,
                what +
                    "; correct the launcher's variables or give the "
                    "rank and the number of ranks as arguments");
}

Result<int> number(const std::string& name, const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  const bool odd = text.empty() || parsed.ec != std::errc() || parsed.ptr != end || value < 0 ||
                   (text.size() > 1 && text.front() == '0');
  if (odd) {
    return refused("environment variable " + name + " is '" + text + "', not a number from 0");
  }
  return value;
}

Result<Rank> read(const Launcher& launcher, const Environment& environment) {
  const auto rankText = environment(launcher.rank);
  const char* sizeName = launcher.sizes[0];
  auto sizeText = environment(sizeName);
  if (!sizeText && launcher.sizes[1] != nullptr && environment(launcher.sizes[1])) {
    sizeName = launcher.sizes[1];
    sizeText = environment(sizeName);
  }
  if (!rankText || !sizeText) {
    const std::string present = rankText ? launcher.rank : sizeName;
    const std::string absent = rankText ? sizeName : launcher.rank;
    return refused("environment variable " + present + " is set but " + absent + " is not");
  }
  const auto rank = number(launcher.rank, *rankText);
  if (!rank) {
    return rank.status();
  }
  const auto size = number(sizeName, *sizeText);
  if (!size) {
    return size.status();
  }
  if (*rank >= *size) {
    return refused("environment variable " + std::string(launcher.rank) + " is " + *rankText +
                   ", but " + sizeName + " is " + *sizeText);
  }
  Rank result{*rank, *size, 0, launcher.source};
  if (const auto localText = environment(launcher.localRank)) {
    const auto local = number(launcher.localRank, *localText);
    if (!local) {
      return local.status();
    }
    if (*local > *rank) {
      return refused("environment variable " + std::string(launcher.localRank) + " is " +
                     *localText + ", but " + launcher.rank + " is " + *rankText);
    }
    result.localRank = *local;
  }
  return result;
}

}  // namespace

Environment processEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Result<Rank> rankFromEnvironment(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const bool named = environment(launcher.rank).has_value() ||
                       (launcher.sizeAloneCounts && environment(launcher.sizes[0]).has_value());
    if (named) {
      return read(launcher, environment);
    }
  }
  return Rank{};
}

Result<std::string> hostIdFromEnvironment(const Environment& environment) {
  constexpr std::size_t kLongest = 128;
  const auto given = environment("PUSHROD_HOST_ID");
  if (!given) {
    return common::bootId();
  }
  const bool plain =
      std::all_of(given->begin(), given->end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (given->empty() || given->size() > kLongest || !plain) {
    return Status(Code::kInvalidArgument,
                  "PUSHROD_HOST_ID is not a text of 1 to 128 visible ASCII characters without "
                  "spaces; correct or unset it");
  }
  return *given;
}

}  // namespace pushrod::ranks

namespace pushrod {

Result<Rank> Rank::fromEnvironment() {
  return ranks::rankFromEnvironment(ranks::processEnvironment());
}

Result<Rank> Rank::of(int rank, int size) {
  if (size < 1 || rank < 0 || rank >= size) {
    return Status(Code::kInvalidArgument,
                  "rank " + std::to_string(rank) + " of " + std::to_string(size) +
                      " ranks does not exist; the rank counts from 0 and is below the number of "
                      "ranks");
  }
  return Rank{rank, size, 0, "arguments"};
}

}  // namespace pushrod
