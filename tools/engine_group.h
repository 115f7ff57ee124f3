// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/engine_client.h>
#include <pushrod/log_sink.h>

#include "net/io_executor.h"

namespace pushrod::tools {

/// The configured engines as an operator's command asks them: all at once, one kind of call at a
/// time, waited for on the calling thread. An engine that failed is not asked any more.
class EngineGroup {
 public:
  struct Member {
    std::string name;
    std::string url;
    Status failure;  ///< ok: none so far
    std::shared_ptr<const EngineIdentity> identity;
    Reply last;  ///< of the last call that was made to it
  };

  static Result<std::unique_ptr<EngineGroup>> create(const Config& config);
  ~EngineGroup();
  EngineGroup(const EngineGroup&) = delete;
  EngineGroup& operator=(const EngineGroup&) = delete;

  [[nodiscard]] std::vector<Member>& members() { return members_; }

  /// One call to every member that has not failed and for which `choose` (by index) has one;
  /// returns when all have answered or `limit` has ended them.
  void ask(const std::function<std::optional<CallKind>(std::size_t)>& choose, Duration limit);
  /// The same call to every member that has not failed.
  void askAll(CallKind kind, Duration limit);

 private:
  EngineGroup() = default;

  net::IoExecutor executor_;
  std::unique_ptr<LogSink> log_;
  std::vector<std::unique_ptr<EngineClient>> clients_;  ///< control thread
  std::vector<Member> members_;
};

}  // namespace pushrod::tools
