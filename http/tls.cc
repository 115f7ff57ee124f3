// SPDX-License-Identifier: Apache-2.0
#include "http/tls.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <system_error>
#include <tuple>

#include <boost/asio/ssl/verify_mode.hpp>
#include <boost/system/error_code.hpp>

namespace pushrod::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Context = asio::ssl::context;

/// The largest bundles of certificates are a few hundred KiB.
constexpr std::int64_t kLargestFile = std::int64_t{16} << 20;

Status unusable(const std::string& what, const std::string& path, const std::string& why) {
  return Status(Code::kInvalidArgument, what + " " + path + " cannot be used: " + why);
}

/// Which file a name stands for, so that a new one under an old name is another: device, number,
/// size and time of change.
using Stamp = std::array<std::int64_t, 5>;

/// Reading a pipe or a device may wait for ever or never end; OpenSSL would do either.
Result<Stamp> checkFile(const std::string& what, const std::string& path) {
  if (path.empty()) {
    return Stamp();
  }
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0) {
    return unusable(what, path, std::generic_category().message(errno));
  }
  if (!S_ISREG(state.st_mode)) {
    return unusable(what, path, "it is not a regular file");
  }
  if (state.st_size > kLargestFile) {
    return unusable(what, path, "it is larger than 16 MiB");
  }
  return Stamp{static_cast<std::int64_t>(state.st_dev),
               static_cast<std::int64_t>(state.st_ino),
               state.st_size,
               state.st_mtim.tv_sec,
               state.st_mtim.tv_nsec};
}

constexpr const char* kCa = "the CA file";
constexpr const char* kCert = "the certificate file";
constexpr const char* kKey = "the key file";

using Stamps = std::array<Stamp, 3>;

Result<Stamps> checkFiles(const TlsFiles& files) {
  Stamps stamps;
  const std::array<std::pair<const char*, const std::string&>, 3> all = {
      {{kCa, files.ca}, {kCert, files.cert}, {kKey, files.key}}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Result<Stamp> stamp = checkFile(all.at(i).first, all.at(i).second);
    if (!stamp) {
      return stamp.status();
    }
    stamps.at(i) = *stamp;
  }
  return stamps;
}

Status load(Context& tls, const TlsFiles& files) {
  error_code error;
  tls.set_options(Context::default_workarounds | Context::no_tlsv1 | Context::no_tlsv1_1, error);
  tls.set_verify_mode(files.verify ? asio::ssl::verify_peer : asio::ssl::verify_none, error);
  if (!files.ca.empty()) {
    tls.load_verify_file(files.ca, error);
    if (error) {
      return unusable(kCa, files.ca, error.message());
    }
  } else if (files.verify) {
    tls.set_default_verify_paths(error);
  }
  if (files.cert.empty() != files.key.empty()) {
    return Status(Code::kInvalidArgument,
                  "a client certificate and its key must be given together");
  }
  if (!files.cert.empty()) {
    tls.use_certificate_chain_file(files.cert, error);
    if (error) {
      return unusable(kCert, files.cert, error.message());
    }
    tls.use_private_key_file(files.key, Context::pem, error);
    if (error) {
      return unusable(kKey, files.key, error.message());
    }
  }
  return {};
}

}  // namespace

Status checkTlsFiles(const TlsFiles& files) {
  return makeTlsContext(files).status();
}

Result<std::shared_ptr<Context>> makeTlsContext(const TlsFiles& files) {
  using Key = std::tuple<std::string, std::string, std::string, bool, Stamps>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<Context>> made;
  const Result<Stamps> stamps = checkFiles(files);
  if (!stamps) {
    return stamps.status();
  }
  const std::lock_guard lock(mutex);
  std::erase_if(made, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Context>& known = made[{files.ca, files.cert, files.key, files.verify, *stamps}];
  if (auto context = known.lock()) {
    return context;
  }
  auto context = std::make_shared<Context>(Context::tls_client);
  if (Status loaded = load(*context, files); !loaded.ok()) {
    return loaded;
  }
  known = context;
  return context;
}

}  // namespace pushrod::http
