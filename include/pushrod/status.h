// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/phase.h>

namespace pushrod {

/// What kind of failure, named by what the caller should do about it.
enum class Code : std::uint8_t {
  kOk,
  kInvalidArgument,     ///< the request itself is wrong: change it; a repeat cannot help
  kFailedPrecondition,  ///< the other side is in a state that forbids it: bring it into the right
                        ///< one
  kUnavailable,         ///< could not be reached or answered unusably; may work later
  kDeadlineExceeded,    ///< a configured limit ended it
  kCancelled,           ///< the caller, or a signal, ended it
  kAborted,             ///< ended because something else failed first
  kDataMismatch,        ///< bytes, shapes, versions or digests differ from what was declared
  kInternal,            ///< a broken promise of Pushrod or of a library
};

/// Whether the other side of a request may have acted on it.
enum class Outcome : std::uint8_t {
  kNotSent,   ///< it never left
  kRejected,  ///< the other side said no and did nothing
  kApplied,   ///< it was done
  kUnknown,   ///< sent, but no usable answer
};

/// Lower-case text of a code as it stands in reports and metric labels, e.g. "deadline_exceeded".
[[nodiscard]] std::string_view codeName(Code code);
/// "not_sent", "rejected", "applied" or "unknown".
[[nodiscard]] std::string_view outcomeName(Outcome outcome);

/// Where a failure arose. Unset members say "not known" or "does not apply".
struct Origin {
  int rank = -1;       ///< trainer rank, -1 unset
  std::string engine;  ///< configured engine name, empty unset
  Phase phase = Phase::kIdle;
  std::uint64_t epoch = 0;
  int attempt = 0;  ///< 1 or 2; 0 unset

  bool operator==(const Origin&) const = default;
};

/// The result of an operation without a value. A default Status is success. A plain value: copy it
/// freely, share it between threads as any value. The first cause of a failure keeps its place;
/// later errors are added as notes and never replace it.
class [[nodiscard]] Status {
 public:
  Status() = default;

  /// A failure. `message` says what failed and why, in one sentence without a final full stop.
  Status(Code code, std::string message, Outcome outcome = Outcome::kNotSent)
      : code_(code), outcome_(outcome), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const { return code_ == Code::kOk; }

  explicit operator bool() const { return ok(); }

  [[nodiscard]] Code code() const { return code_; }

  [[nodiscard]] Outcome outcome() const { return outcome_; }

  [[nodiscard]] const Origin& origin() const { return origin_; }

  [[nodiscard]] const std::string& message() const { return message_; }

  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  /// A copy with this origin; members already set are kept, so the innermost knowledge wins.
  [[nodiscard]] Status at(const Origin& origin) const;
  /// A copy with another outcome.
  [[nodiscard]] Status with(Outcome outcome) const;
  /// A copy with "prefix: " before the message.
  [[nodiscard]] Status prefixed(std::string_view prefix) const;
  /// Adds a later error. At most 16 are kept; the last then counts the rest.
  void addNote(std::string note);
  /// Keeps the first failure: a success becomes `later`, a failure gets it as a note.
  void merge(const Status& later);

  /// One line for people: "rank 2, stream, attempt 1: text [code]".
  [[nodiscard]] std::string toString() const;

  bool operator==(const Status&) const = default;

 private:
  Code code_ = Code::kOk;
  Outcome outcome_ = Outcome::kApplied;
  Origin origin_;
  std::string message_;
  std::vector<std::string> notes_;
  std::size_t dropped_ = 0;
};

}  // namespace pushrod
