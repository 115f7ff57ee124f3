// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace pushrod::http::test {

/// A self-signed certificate for localhost and 127.0.0.1 with its key, made now, as two files that
/// go with the object.
class TestCertificate {
 public:
  TestCertificate();
  ~TestCertificate();
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  [[nodiscard]] const std::string& certificate() const { return certificate_; }

  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  std::string folder_, certificate_, key_;
};

}  // namespace pushrod::http::test
