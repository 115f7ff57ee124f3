// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/status.h"

#include <chrono>
#include <memory>
#include <string>

#include "net/io_executor.h"
#include "tools/blocking_http.h"
#include "tools/console.h"
#include "tools/exit_code.h"
#include "tools/json_text.h"

namespace pushrod::tools {
namespace {

constexpr Duration kLimit = std::chrono::seconds(5);

int show(std::string url) {
  if (url.find("://") == std::string::npos) {
    url = "http://" + url;
  }
  const Result<http::Url> parsed = http::Url::parse(url);
  if (!parsed) {
    printError(parsed.status().message());
    return kExitRefused;
  }
  // The address may be given with or without the page's own path.
  const std::string target = parsed->prefix.ends_with("/status") ? "" : "/status";
  net::IoExecutor executor;
  const Result<http::Response> response = fetch(executor, url, target, kLimit);
  if (!response) {
    printError(url + ": no status: " + response.status().message() +
               "; is the job running, and is this its metrics address?");
    return kExitFailed;
  }
  const auto pretty = prettyJson(response->body);
  if (response->status != 200 || !pretty) {
    printError(url + ": answered " + std::to_string(response->status) +
               " without a status page; is this a Pushrod job's metrics address?");
    return kExitFailed;
  }
  return printAnswer(*pretty + "\n");
}

}  // namespace

void addStatusCommand(CLI::App& app, int& exitCode) {
  const auto url = std::make_shared<std::string>();
  CLI::App* status = app.add_subcommand("status", "Show one snapshot of a running job");
  status->add_option("url", *url, "Metrics address of the job, as it printed it")->required();
  status->callback([url, &exitCode] { exitCode = show(*url); });
}

}  // namespace pushrod::tools
