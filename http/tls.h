// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include <pushrod/result.h>

namespace pushrod::http {

/// Whose certificates are believed and which one is ours. Empty names: the system's, none.
struct TlsFiles {
  std::string ca = {}, cert = {}, key = {};
  bool verify = true;
};

/// Whether a client could use these files now: invalidArgument, naming the file, when not. Only
/// regular files of a sane size are opened, so that this never waits.
[[nodiscard]] Status checkTlsFiles(const TlsFiles& files);

/// What clients need of the files. The same for all that use the same files at a time: one holds
/// the whole set of believed certificates, too much to have it for each of many engines.
Result<std::shared_ptr<boost::asio::ssl::context>> makeTlsContext(const TlsFiles& files);

}  // namespace pushrod::http
