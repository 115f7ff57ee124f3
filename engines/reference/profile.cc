// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/profile.h"

#include <array>
#include <string_view>

namespace pushrod::engines::reference {

namespace {

struct Line {
  int minor;
  std::string_view name;
  std::string_view release;
};

constexpr std::array<Line, 12> kLines = {{{22, "0.22", "0.22.1"},
                                          {23, "0.23", "0.23.0"},
                                          {24, "0.24", "0.24.0"},
                                          {25, "0.25", "0.25.1"},
                                          {26, "0.26", "0.26.0"},
                                          {27, "0.27", "0.27.1"},
                                          {28, "0.28", "0.28.0"},
                                          {29, "0.29", "0.29.0"},
                                          {30, "0.30", "0.30.0"},
                                          {31, "0.31", "0.31.0"},
                                          {32, "0.32", "0.32.0"},
                                          {33, "0.33", "0.33.0"}}};

Profile make(const Line& line) {
  const int minor = line.minor;
  return Profile{.minor = minor,
                 .release = std::string(line.release),
                 .startNeedsBody = minor <= 24,
                 .failedUpdateCloses = minor >= 23,
                 .keepsCounters = minor <= 24,
                 .parsesFinish = minor >= 27,
                 .prefixResetAnswers = minor >= 26,
                 .listPayload = minor >= 29,
                 .listByIndex = minor >= 31,
                 .typedBodies = minor >= 32,
                 .sleepAnswers = minor >= 32,
                 .consensusReads = minor >= 32,
                 .operationMetrics = minor >= 32,
                 .reusesMetadata = minor >= 33,
                 .refusesWhilePaused = minor >= 33,
                 .paramInErrors = minor >= 24,
                 .dottedLocations = minor >= 30};
}

}  // namespace

Result<Profile> Profile::find(const std::string& text) {
  for (const Line& line : kLines) {
    if (text == line.name || text == line.release) {
      return make(line);
    }
  }
  return Status(Code::kInvalidArgument,
                "no profile \"" + text + "\": the known ones are 0.22 to 0.33");
}

}  // namespace pushrod::engines::reference
