// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/result.h>

namespace pushrod::engines::reference {

/// What one server release does differently from the others. This table is the engine's own: it
/// shares nothing with the client's, so that the two can disagree and a test can see it.
struct Profile {
  int minor = 33;           ///< 22 to 33
  std::string release;      ///< what GET /version answers
  bool startNeedsBody;      ///< start wants a JSON object
  bool failedUpdateCloses;  ///< a failed update ends the session
  bool keepsCounters;       ///< start keeps what an interrupted session had counted for a layer
  bool parsesFinish;        ///< finish reads weight_version
  bool prefixResetAnswers;  ///< /reset_prefix_cache says success
  bool listPayload;         ///< update_info may be one entry per worker
  bool listByIndex;         ///< the list is indexed by the replica's index, not its rank
  bool typedBodies;         ///< wrong bodies are 400 and need the JSON content type
  bool sleepAnswers;        ///< /sleep and /wake_up answer JSON
  bool consensusReads;      ///< /weight_info and /is_paused want all cores to agree
  bool operationMetrics;    ///< vllm:rl_weight_update_*
  bool reusesMetadata;      ///< empty lists mean the last ones
  bool refusesWhilePaused;  ///< generation is 503 while paused by abort or wait
  bool paramInErrors;       ///< validation errors name their parameter
  bool dottedLocations;     ///< "query.mode" rather than a tuple in validation texts

  /// "0.33" or a full release of that line; invalidArgument naming the known ones.
  static Result<Profile> find(const std::string& text);
};

}  // namespace pushrod::engines::reference
