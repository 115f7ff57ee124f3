// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/factory.h"

#include <utility>

#include "config/environment.h"
#include "engines/vllm/vllm_client.h"

namespace pushrod::engines::vllm {

namespace {

Result<std::string> readToken(const std::string& variable) {
  if (variable.empty()) {
    return std::string();
  }
  Result<std::string> token = config::readSecret(variable);
  return token ? std::move(token) : token.status().prefixed("engines.token_env");
}

RequestObserver observerFor(metrics::PushMetrics* metrics, const std::string& engine) {
  if (metrics == nullptr) {
    return {};
  }
  return [metrics, engine](std::string_view label, metrics::RequestResult result, double seconds) {
    metrics->request(engine, label, result, seconds);
  };
}

}  // namespace

Result<std::unique_ptr<EngineClient>> makeVllmClient(net::IoExecutor& executor,
                                                     VllmClientOptions options,
                                                     metrics::PushMetrics* metrics,
                                                     LogSink* log) {
  const Result<http::Url> url = http::Url::parse(options.engine.url);
  if (!url) {
    return url.status();
  }
  if (options.engine.name.empty()) {
    options.engine.name = url->authority();
  }
  Result<std::string> token = readToken(options.common.tokenEnv);
  if (!token) {
    return token.status();
  }
  http::ClientOptions client;
  options.token = *token;
  client.bearerToken = *std::move(token);
  client.caFile = options.common.tls.ca;
  client.certFile = options.common.tls.cert;
  client.keyFile = options.common.tls.key;
  client.verifyTls = options.common.tls.verify;
  client.proxy = options.common.proxy;
  Result<std::unique_ptr<http::Client>> calls = http::Client::create(executor, *url, client);
  if (!calls) {
    return calls.status().at({.engine = options.engine.name});
  }
  // A client of its own, so that a probe never waits for a call's connection.
  Result<std::unique_ptr<http::Client>> probes =
      http::Client::create(executor, *url, std::move(client));
  if (!probes) {
    return probes.status().at({.engine = options.engine.name});
  }
  RequestObserver observer = observerFor(metrics, options.engine.name);
  return std::unique_ptr<EngineClient>(std::make_unique<VllmClient>(executor,
                                                                    *std::move(calls),
                                                                    *std::move(probes),
                                                                    std::move(options),
                                                                    std::move(observer),
                                                                    log));
}

}  // namespace pushrod::engines::vllm
