// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/demo/demo_engine.h"
#include "tools/demo/demo_ranks.h"
#include "tools/demo/metric_page.h"

namespace pushrod::tools {

// The demo's texts, as pure functions of what happened.

/// One line per phase that the push went through, with its time and what it is for.
[[nodiscard]] std::string phaseLines(const RankVerdict& verdict);

/// "ranks  0 done, 1 done, ..." and, when they failed, the common cause.
[[nodiscard]] std::string rankLines(const std::vector<RankVerdict>& verdicts);

/// One line for an engine: its state, and its content against the checkpoint's digest.
[[nodiscard]] std::string engineLine(const std::string& name,
                                     const Result<EngineState>& state,
                                     const std::string& checkpointDigest);

/// The metrics that a reader of dashboards would have seen move.
[[nodiscard]] std::string metricLines(const MetricPage& before, const MetricPage& after);

/// What the report says is to be done, one line per engine that has a remedy.
[[nodiscard]] std::string remedyLines(const RankVerdict& verdict);

/// `text` broken at spaces so that no line is longer than 96, each behind `indent` spaces.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t indent);

}  // namespace pushrod::tools
