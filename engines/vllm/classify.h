// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/engine_client.h>
#include <pushrod/result.h>

#include "http/client.h"

namespace pushrod::engines::vllm {

/// The verdict on one request's answer by its HTTP status alone. `where` names request and engine
/// in messages, e.g. "POST http://10.0.0.5:8000/pause". Ok for a 2xx, whose body is not looked at.
///  - no answer: the HTTP client's failure, naming the request;
///  - 3xx: unavailable, outcome unknown (never followed);
///  - 4xx: rejected; 408, 425 and 429 are unavailable, 400, 413, 415 and 422 invalidArgument, the
///    others failedPrecondition;
///  - 5xx: unavailable, outcome unknown, unless the text is a refusal of this kind of call:
///    failedPrecondition, rejected.
[[nodiscard]] Status httpVerdict(CallKind kind,
                                 const Result<http::Response>& result,
                                 const EngineFeatures& features,
                                 const std::string& where);

/// The whole Reply to a call of one request: httpVerdict, then the body that the contract promises.
/// A 2xx with another body is unavailable, outcome unknown, and quotes it; a body that says "no"
/// (a prefix reset's success: false) is failedPrecondition, rejected. Not for kIdentify and
/// kMeasureLag.
[[nodiscard]] Reply classify(const Call& call,
                             const Result<http::Response>& result,
                             const EngineFeatures& features,
                             const std::string& where);

/// Whether the answer is a 500 that an executor raised, after which replies may come late.
[[nodiscard]] bool isExecutorFailure(const Result<http::Response>& result);
/// Whether what answered speaks another protocol.
[[nodiscard]] bool speaksNoHttp(const Result<http::Response>& result);
/// Whether an answered or failed request may be sent again when it is repeatable: no answer at all,
/// or one that asks for a later try (408, 425, 429, 502, 503, 504).
[[nodiscard]] bool isTransient(const Result<http::Response>& result);

}  // namespace pushrod::engines::vllm
