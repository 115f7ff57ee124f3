// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_engine.h"

#include <chrono>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

#include <boost/json.hpp>

#include "tools/blocking_http.h"
#include "tools/line_reader.h"

namespace pushrod::tools {
namespace {

namespace json = boost::json;

constexpr Duration kLimit = std::chrono::seconds(5);

/// The port in the engine's first line.
std::optional<std::int64_t> portOf(const std::string& line) {
  json::error_code error;
  const json::value value = json::parse(line, error);
  const json::value* port =
      error || !value.is_object() ? nullptr : value.get_object().if_contains("port");
  if (port == nullptr || !port->is_int64()) {
    return std::nullopt;
  }
  return port->get_int64();
}

}  // namespace

Result<std::unique_ptr<DemoEngine>> DemoEngine::start(net::IoExecutor& executor,
                                                      const Options& options) {
  std::unique_ptr<DemoEngine> engine(new DemoEngine(executor));
  engine->name_ = options.name;
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) {
    return Status(Code::kUnavailable, "no pipe for an engine");
  }
  engine->output_ = Descriptor(pipe[0]);
  const Descriptor writer(pipe[1]);
  const Descriptor log(
      ::open(options.logFile.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  Result<std::unique_ptr<ChildProcess>> process =
      ChildProcess::start({.command = {ownProgram(),
                                       "engine",
                                       "--port",
                                       "0",
                                       "--backend",
                                       "tcp",
                                       "--world-size",
                                       std::to_string(options.workers),
                                       "--name",
                                       options.name},
                           .output = writer.get(),
                           .errors = log.get()});
  if (!process) {
    return process.status().prefixed(options.name);
  }
  engine->process_ = std::move(*process);
  LineReader lines(engine->output_.get());
  const auto line = lines.next(Deadline::after(executor, kLimit));
  const auto port = line ? portOf(*line) : std::nullopt;
  if (!port) {
    return Status(Code::kUnavailable, options.name + " did not start");
  }
  engine->url_ = "http://127.0.0.1:" + std::to_string(*port);
  return engine;
}

Result<EngineState> DemoEngine::state() {
  const Result<http::Response> response = fetch(executor_, url_, "/__state", kLimit);
  if (!response) {
    return response.status();
  }
  return parseEngineState(response->body);
}

Status DemoEngine::plan(const std::string& faults) {
  const Result<http::Response> response =
      fetch(executor_, url_, "/__ctl", kLimit, "{\"faults\": " + faults + "}");
  if (!response) {
    return response.status();
  }
  return response->status == 200
             ? Status()
             : Status(Code::kInternal, name_ + " refused its faults: " + response->body);
}

Result<EngineState> parseEngineState(const std::string& text) {
  try {
    const json::value value = json::parse(text);
    EngineState state;
    const json::value& version = value.at("version");
    state.version = version.is_string() ? std::string(version.get_string()) : "none";
    state.paused = value.at("paused").as_bool();
    state.torn = value.at("torn").as_bool();
    for (const auto& member : value.at("weights").as_object()) {
      state.weights[std::string(member.key())] = std::string(member.value().as_string());
    }
    return state;
  } catch (const std::exception& error) {
    return Status(Code::kInternal, std::string("not an engine's state: ") + error.what());
  }
}

}  // namespace pushrod::tools
