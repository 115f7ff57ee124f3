// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/identity.h"

#include <algorithm>
#include <charconv>

#include "engines/vllm/json.h"
#include "engines/vllm/reply_text.h"

namespace pushrod::engines::vllm {

namespace {

namespace json = boost::json;

constexpr int kMaxLag = 8;

Status refusal(const std::string& text) {
  return {Code::kFailedPrecondition, text, Outcome::kRejected};
}

/// The configured backend; "" for an explicit null, nullopt when nothing is said.
std::optional<std::string> backendOf(const json::value& config) {
  const json::value* const transfer = member(config, "weight_transfer_config");
  if (transfer == nullptr) {
    return std::nullopt;
  }
  if (transfer->is_null()) {
    return "";
  }
  return stringOf(member(*transfer, "backend"));
}

bool carries(TransportKind transport, const std::string& backend) {
  switch (transport) {
    case TransportKind::kNccl:
      return backend == "nccl" || backend == "pushrod_nccl";
    case TransportKind::kIpc:
      return backend == "ipc";
    case TransportKind::kTcp:
      return backend == "pushrod_tcp";
    case TransportKind::kShm:
      return backend == "pushrod_shm";
    case TransportKind::kMixed:
      break;
  }
  return true;
}

std::string backendNames(TransportKind transport) {
  switch (transport) {
    case TransportKind::kNccl:
      return "nccl or pushrod_nccl";
    case TransportKind::kIpc:
      return "ipc";
    case TransportKind::kTcp:
      return "pushrod_tcp";
    case TransportKind::kShm:
      return "pushrod_shm";
    case TransportKind::kMixed:
      break;
  }
  return "any";
}

Status checkBackend(const std::optional<std::string>& backend, TransportKind transport) {
  if (!backend || carries(transport, *backend)) {
    return {};
  }
  const std::string names = backendNames(transport);
  const std::string has = backend->empty() ? "no weight transfer backend"
                                           : "the weight transfer backend " + quoted(*backend);
  return refusal(
      "it was started with " + has + ", but transport " + std::string(transportName(transport)) +
      " needs " + names + "; start it with --weight-transfer-config '{\"backend\":\"" +
      names.substr(0, names.find(' ')) + "\"}'" +
      (names.starts_with("pushrod") ? ", with the package pushrod in its environment," : "") +
      " or change the engine's transport");
}

Status checkModel(const std::string& expected, const std::vector<std::string>& models) {
  if (expected.empty() || std::find(models.begin(), models.end(), expected) != models.end()) {
    return {};
  }
  if (models.empty()) {
    return refusal("expect.model is " + quoted(expected) +
                   ", but the server does not tell its model at /v1/models; give its key through "
                   "engines.token_env or drop the key");
  }
  return refusal("it serves the model " + quoted(models.front()) + ", but expect.model is " +
                 quoted(expected) + "; correct the engine's url or expect.model");
}

Status checkNumber(const std::string& key, std::optional<int> expected, int told) {
  if (!expected || *expected == told) {
    return {};
  }
  return refusal("it has " + key + " " + std::to_string(told) + ", but expect." + key + " is " +
                 std::to_string(*expected) + "; correct the engine's url or expect." + key);
}

/// The value of a sample line that begins at the metric's name: its sleep_state label and number.
struct SleepSample {
  std::string_view state;
  double value = 0;
};

std::optional<SleepSample> sleepSample(std::string_view line) {
  constexpr std::string_view kName = "vllm:engine_sleep_state{";
  constexpr std::string_view kLabel = "sleep_state=\"";
  if (!line.starts_with(kName)) {
    return std::nullopt;
  }
  // The label's name must not be the tail of another label's.
  std::size_t at = line.find(kLabel, kName.size() - 1);
  while (at != std::string_view::npos && line[at - 1] != '{' && line[at - 1] != ',') {
    at = line.find(kLabel, at + 1);
  }
  const std::size_t close = line.rfind('}');
  if (at == std::string_view::npos || close == std::string_view::npos || close < at) {
    return std::nullopt;
  }
  const std::size_t begin = at + kLabel.size();
  SleepSample sample;
  sample.state = line.substr(begin, line.find('"', begin) - begin);
  std::string_view number = line.substr(close + 1);
  number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
  const auto read = std::from_chars(number.data(), number.data() + number.size(), sample.value);
  if (read.ec != std::errc()) {
    return std::nullopt;
  }
  return sample;
}

}  // namespace

ServerInfo readServerInfo(std::string_view body) {
  ServerInfo info;
  const auto value = parseJson(body);
  const json::value* const config = value ? member(*value, "vllm_config") : nullptr;
  if (config == nullptr || !config->is_object()) {
    return info;
  }
  info.tensorParallel = intOf(member(*config, "parallel_config", "tensor_parallel_size"));
  info.pipelineParallel = intOf(member(*config, "parallel_config", "pipeline_parallel_size"));
  info.dataParallel = intOf(member(*config, "parallel_config", "data_parallel_size"));
  info.executor =
      stringOf(member(*config, "parallel_config", "distributed_executor_backend")).value_or("");
  info.dtype = stringOf(member(*config, "model_config", "dtype")).value_or("");
  info.quantization = stringOf(member(*config, "model_config", "quantization")).value_or("");
  constexpr std::string_view kTorch = "torch.";
  if (info.dtype.starts_with(kTorch)) {
    info.dtype.erase(0, kTorch.size());
  }
  info.backend = backendOf(*config);
  const json::value* const connector = member(*config, "kv_transfer_config");
  info.externalCache = connector != nullptr && connector->is_object();
  return info;
}

std::vector<std::string> readModels(std::string_view body) {
  std::vector<std::string> models;
  const auto value = parseJson(body);
  const json::value* const data = value ? member(*value, "data") : nullptr;
  if (data != nullptr && data->is_array()) {
    for (const json::value& entry : data->get_array()) {
      if (auto id = stringOf(member(entry, "id"))) {
        models.push_back(*std::move(id));
      }
    }
  }
  return models;
}

bool readAsleep(std::string_view metricsPage) {
  while (!metricsPage.empty()) {
    const std::size_t end = std::min(metricsPage.find('\n'), metricsPage.size());
    if (const auto sample = sleepSample(metricsPage.substr(0, end))) {
      const bool awakeState = sample->state == "awake";
      if (awakeState ? sample->value == 0 : sample->value > 0) {
        return true;
      }
    }
    metricsPage.remove_prefix(std::min(end + 1, metricsPage.size()));
  }
  return false;
}

Status checkIdentity(const EngineIdentity& identity,
                     const std::optional<std::string>& backend,
                     const std::vector<std::string>& models,
                     const VllmClientOptions& options) {
  const EngineExpect& expect = options.engine.expect;
  Status status = checkBackend(backend, options.transport);
  if (status) {
    status = checkModel(expect.model, models);
  }
  if (status) {
    status = checkNumber("world_size", expect.worldSize, identity.worldSize);
  }
  if (status && identity.pipelineStages > 0) {
    status = checkNumber("pipeline_stages", expect.pipelineStages, identity.pipelineStages);
  }
  return status;
}

Status lagUnmeasurable(const std::string& why) {
  return {Code::kFailedPrecondition,
          "how late the replies of its workers come cannot be measured (" + why +
              "); restart the engine",
          Outcome::kNotSent};
}

Status lagVerdict(const EngineState& state) {
  if (state.lag == 0) {
    return {};
  }
  const auto unusable = [&state](const std::string& why) {
    return Status(Code::kFailedPrecondition,
                  "replies of its workers come " + std::to_string(state.lag) +
                      " calls late after earlier errors, and " + why + "; restart the engine",
                  Outcome::kNotSent);
  };
  if (state.lag > kMaxLag) {
    return unusable("more than " + std::to_string(kMaxLag) + " are not made up for");
  }
  const EngineIdentity* const identity = state.identity.get();
  const int stages = identity == nullptr ? 0 : identity->pipelineStages;
  if (stages == 0) {
    return unusable(
        "whether it has pipeline stages, which then generate wrongly, is not known (set "
        "expect.pipeline_stages)");
  }
  if (stages > 1) {
    return unusable("with " + std::to_string(stages) +
                    " pipeline stages generation itself takes late replies");
  }
  if (identity->dataParallel > 1 && state.options.engine.dpGroup.empty()) {
    return unusable("with " + std::to_string(identity->dataParallel) +
                    " data-parallel cores behind one address only one core's can be read");
  }
  return {};
}

}  // namespace pushrod::engines::vllm
