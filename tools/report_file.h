// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <pushrod/report.h>
#include <pushrod/status.h>

namespace pushrod::tools {

/// Whether a report could be written to `path` now: invalidArgument, naming it, when not. Leaves
/// nothing behind.
[[nodiscard]] Status checkReportPath(const std::string& path);
/// Takes away what an earlier push left at `path`, which checkReportPath() has passed.
void removeOldReport(const std::string& path);
/// Writes a temporary file beside `path` and renames it, so that a reader sees all or nothing.
[[nodiscard]] Status writeReportFile(const std::string& path, std::string_view text);

/// Of a push that did not begin because of `why`.
[[nodiscard]] PushReport refusedReport(const std::string& version, int ranks, const Status& why);

}  // namespace pushrod::tools
