// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engines/vllm/flow.h"
#include "engines/vllm/identity.h"

namespace pushrod::engines::vllm {

/// Asks an engine who it is, by harmless reads only: release, routes, size, model, layout, backend,
/// sleep. A server that refuses connections or answers 503 is still starting and is asked again
/// until the deadline. What only some servers tell is optional and never fails the call.
class IdentifyFlow final : public Flow {
 public:
  using Flow::Flow;

  void start() override;

 private:
  enum class Need {
    kRequired,  ///< anything but a 2xx ends the call
    kRoute,     ///< only whether the route exists counts: any answer goes on
    kOptional,  ///< answered or not, it goes on
  };
  using Read = void (IdentifyFlow::*)(const http::Response&);

  /// GET `target`; `read` gets a 2xx, `next` follows where another answer will do.
  struct Step {
    std::string_view label;
    std::string target;
    Need need;
    Read read;
    void (IdentifyFlow::*next)();
  };

  void run(const Step& step);
  void onResult(const Step& step, const Result<http::Response>& result);
  void tryLater(const Step& step, const Result<http::Response>& result);

  void askVersion();
  void readVersion(const http::Response& response);
  void askWeightInfo();
  void onWeightInfo(const http::Response& response);
  void askSleeping();
  void readSleeping(const http::Response& response);
  void askWorldSize();
  void readWorldSize(const http::Response& response);
  void askCoreSize();
  void readCoreSize(const http::Response& response);
  void askModels();
  void readModelList(const http::Response& response);
  void askServerInfo();
  void readInfo(const http::Response& response);
  void askMetrics();
  void readMetrics(const http::Response& response);
  void conclude();

  void refuse(const std::string& text);
  void refuseMissingRoute(const Step& step, int status);
  void refuseBody(const std::string& target, const http::Response& response);
  [[nodiscard]] std::string at(const std::string& target) const;

  EngineIdentity identity_;
  std::optional<std::string> backend_;
  ExternalCache externalCache_ = ExternalCache::kNone;
  std::vector<std::string> models_;
  std::optional<int> coreSize_;
  bool weightInfoMissing_ = false;
  int tries_ = 0;
};

}  // namespace pushrod::engines::vllm
