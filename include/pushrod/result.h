// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <utility>
#include <variant>

#include <pushrod/status.h>

namespace pushrod {

/// A value or the Status that says why there is none. Shaped like std::expected so that it can
/// become an alias of it in C++23. Reading the wrong side ends the process: check first.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  // NOLINTBEGIN(google-explicit-constructor): both conversions are the point of the type.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}

  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {
    if (std::get<1>(state_).ok()) {
      std::abort();
    }
  }

  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }

  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return checked(); }

  [[nodiscard]] const T& value() const& { return const_cast<Result*>(this)->checked(); }

  [[nodiscard]] T&& value() && { return std::move(checked()); }

  T& operator*() & { return checked(); }

  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }

  T&& operator*() && { return std::move(checked()); }

  T* operator->() { return &checked(); }

  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

  /// The failure; a success gives an ok Status.
  [[nodiscard]] Status status() const { return ok() ? Status() : std::get<1>(state_); }

  [[nodiscard]] Status error() const { return status(); }

 private:
  T& checked() {
    if (!ok()) {
      std::abort();
    }
    return std::get<0>(state_);
  }

  std::variant<T, Status> state_;
};

}  // namespace pushrod
