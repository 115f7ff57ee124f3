// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/strict_json.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <optional>

#include <boost/json/basic_parser_impl.hpp>

#include "common/log.h"

namespace pushrod::tools {
namespace {

namespace json = boost::json;
using Error = json::error_code;

constexpr std::size_t kMaxDepth = 16;

/// Receives the parser's events and builds the tree. Returns false to stop the parse; `fault` then
/// says why.
class TreeBuilder {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the names that basic_parser reads.
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::size_t{1} << 20;
  static constexpr std::size_t max_string_size = std::size_t{1} << 20;

  // NOLINTEND(readability-identifier-naming)

  explicit TreeBuilder(std::size_t maxValues) : left_(maxValues) {}

  // NOLINTBEGIN(readability-identifier-naming): the names that Boost.JSON calls.
  bool on_document_begin(Error&) { return true; }

  bool on_document_end(Error&) { return true; }

  bool on_object_begin(Error& error) { return open(JsonNode::Kind::kObject, error); }

  bool on_object_end(std::size_t, Error& error) {
    const std::vector<std::string>& keys = stack_.back()->keys;
    std::vector<std::string_view> sorted(keys.begin(), keys.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      return stop("the name " + quotedName(*twice) + " appears twice", error);
    }
    stack_.pop_back();
    return true;
  }

  bool on_array_begin(Error& error) { return open(JsonNode::Kind::kArray, error); }

  bool on_array_end(std::size_t, Error&) {
    stack_.pop_back();
    return true;
  }

  bool on_key_part(json::string_view part, std::size_t, Error&) {
    partial_.append(part.data(), part.size());
    return true;
  }

  bool on_key(json::string_view part, std::size_t, Error&) {
    partial_.append(part.data(), part.size());
    stack_.back()->keys.push_back(std::exchange(partial_, {}));
    return true;
  }

  bool on_string_part(json::string_view part, std::size_t, Error&) {
    partial_.append(part.data(), part.size());
    return true;
  }

  bool on_string(json::string_view part, std::size_t, Error& error) {
    partial_.append(part.data(), part.size());
    JsonNode* node = add(JsonNode::Kind::kString, error);
    if (node == nullptr) {
      return false;
    }
    node->text = std::exchange(partial_, {});
    return true;
  }

  bool on_number_part(json::string_view, Error&) { return true; }

  bool on_int64(std::int64_t value, json::string_view, Error& error) {
    const auto bits = static_cast<std::uint64_t>(value);
    return integer(value < 0, value < 0 ? ~bits + 1 : bits, error);
  }

  bool on_uint64(std::uint64_t value, json::string_view, Error& error) {
    return integer(false, value, error);
  }

  bool on_double(double value, json::string_view, Error& error) {
    JsonNode* node = add(JsonNode::Kind::kOtherNumber, error);
    if (node == nullptr) {
      return false;
    }
    node->number = value;
    return true;
  }

  bool on_bool(bool value, Error& error) {
    JsonNode* node = add(JsonNode::Kind::kBool, error);
    if (node == nullptr) {
      return false;
    }
    node->magnitude = value ? 1 : 0;
    return true;
  }

  bool on_null(Error& error) { return add(JsonNode::Kind::kNull, error) != nullptr; }

  bool on_comment_part(json::string_view, Error&) { return true; }

  bool on_comment(json::string_view, Error&) { return true; }

  // NOLINTEND(readability-identifier-naming)

  [[nodiscard]] const std::string& fault() const { return fault_; }

  JsonNode take() { return std::move(*root_); }

 private:
  bool stop(std::string why, Error& error) {
    fault_ = std::move(why);
    error = json::error::syntax;
    return false;
  }

  /// A new node in the open container, or the root. Containers on the stack are never the ones that
  /// grow below them, so the pointers kept there stay valid.
  JsonNode* add(JsonNode::Kind kind, Error& error) {
    if (left_ == 0) {
      stop("it holds absurdly many values", error);
      return nullptr;
    }
    --left_;
    JsonNode* node = nullptr;
    if (stack_.empty()) {
      node = &root_.emplace();
    } else {
      node = &stack_.back()->items.emplace_back();
    }
    node->kind = kind;
    return node;
  }

  bool open(JsonNode::Kind kind, Error& error) {
    JsonNode* node = add(kind, error);
    if (node == nullptr) {
      return false;
    }
    stack_.push_back(node);
    return true;
  }

  bool integer(bool negative, std::uint64_t magnitude, Error& error) {
    JsonNode* node = add(JsonNode::Kind::kInteger, error);
    if (node == nullptr) {
      return false;
    }
    node->negative = negative;
    node->magnitude = magnitude;
    return true;
  }

  std::size_t left_;
  std::optional<JsonNode> root_;
  std::vector<JsonNode*> stack_;
  std::string partial_;
  std::string fault_;
};

Status faultAt(std::size_t byte, const std::string& what) {
  return {Code::kInvalidArgument, "byte " + std::to_string(byte) + " of the JSON: " + what};
}

}  // namespace

std::string quotedName(std::string_view text) {
  constexpr std::size_t kShown = 200;
  return common::jsonQuoted(text.substr(0, kShown));
}

const JsonNode* JsonNode::find(std::string_view key) const {
  if (kind != Kind::kObject) {
    return nullptr;
  }
  const auto at = std::find(keys.begin(), keys.end(), key);
  return at == keys.end() ? nullptr : &items[static_cast<std::size_t>(at - keys.begin())];
}

Result<JsonNode> parseStrictJson(std::string_view text, std::size_t maxValues) {
  try {
    json::parse_options options;
    options.max_depth = kMaxDepth;
    json::basic_parser<TreeBuilder> parser(options, maxValues);
    Error error;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
    if (error) {
      const std::string& own = parser.handler().fault();
      return faultAt(used, own.empty() ? error.message() : own);
    }
    if (used < text.size()) {
      return faultAt(used, "something follows the document");
    }
    return parser.handler().take();
  } catch (const std::exception& thrown) {
    return Status(Code::kInternal, std::string("the JSON parser failed: ") + thrown.what());
  }
}

}  // namespace pushrod::tools
