// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pushrod::engines::reference {

/// SHA-256 fed piece by piece. One use: after hex() the object is spent.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void add(const void* data, std::size_t bytes);
  void addZeros(std::uint64_t bytes);
  /// 64 lower-case hex digits.
  [[nodiscard]] std::string hex();

  [[nodiscard]] static std::string of(std::string_view text);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace pushrod::engines::reference
